// The page of two sides.
async function main() {
	const d = JSON.parse(new TextDecoder().decode(await unpack("model")));
	readColours();
	$("runs-slot").append(runs(d));
	$("run-slot").append(simple("The runs", changeColumns("Of the run", null).filter(c => c.name !== "Verdict" || d.tested === "runs"), d.run));
	$("time-slot").append(changes(d.time, "Time of all threads", "Class", "class", null, c => el("span", {class: "field"}, chip(c.name), groupWords[c.name] || c.name)));
	latencies(d);
	$("locks-slot").append(changes(d.locks, "Waits by object", "Object", "object", "Waits"));
	$("files-slot").append(changes(d.files, "Time in files", "File", "file", "Calls"));
	$("conns-slot").append(changes(d.connections, "Time in connections", "Connection", "connection", "Calls"));
	$("threads-slot").append(changes(d.threads, "CPU time of threads", "Thread", "thread", "Events"));
	themes(() => 0);
	sections();
	document.documentElement.dataset.ready = "true";
}

const show = (c, v) => c.unit === "ns" ? dur(v) : grouped(v);
const verdicts = {more: ["slower", "more"], less: ["faster", "less"], same: ["", "no change shown"], unknown: ["", "not tested"], new: ["", "only in B"], gone: ["", "only in A"]};
const badge = (v, words) => { const [cls, text] = verdicts[v] || ["", v]; return el("span", {class: "badge " + cls}, words && words[v] || text); };

function changeText(a, b) {
	if (a === b) return "0%";
	if (!a) return "new";
	if (!b) return "gone";
	const r = b / a;
	return r >= 10 ? "×" + digits(r) : (r >= 1 ? "+" : "−") + digits(Math.abs(100 * (r - 1))) + "%";
}
const qText = q => q == null ? "–" : q < .0001 ? "<0.0001" : q.toFixed(4);
const size2 = c => Math.abs(c.delta);

function changeColumns(first, counts, name) {
	return [
		{name: first, of: c => c.name, show: c => name ? name(c) : c.name, cls: name ? null : "name"},
		{name: "A", n: true, of: c => c.a, show: c => show(c, c.a)},
		{name: "B", n: true, of: c => c.b, show: c => show(c, c.b)},
		{name: "Difference", n: true, of: size2, show: c => (c.delta > 0 ? "+" : c.delta < 0 ? "−" : "") + show(c, Math.abs(c.delta))},
		{name: "Change", n: true, of: c => c.a ? c.b / c.a : Infinity, show: c => changeText(c.a, c.b)},
		...(counts ? [{name: counts + " A", n: true, of: c => c.a_count, show: c => grouped(c.a_count)}, {name: counts + " B", n: true, of: c => c.b_count, show: c => grouped(c.b_count)}] : []),
		{name: "q", n: true, of: c => c.q == null ? 2 : c.q, show: c => qText(c.q), title: "chance that what is shown as a change is none, corrected for how many are compared"},
		{name: "Verdict", of: c => c.verdict, show: c => badge(c.verdict)}];
}

function changes(rows, caption, first, thing, counts, name) {
	if (!rows.length) return el("p", {class: "none"}, "Nothing on either side.");
	return table({caption, rows, thing, step: 12, by: 3, filter: rows.length > 12 ? "Find" : null, text: c => c.name, columns: changeColumns(first, counts, name)});
}

// runs draws the duration of each run of both sides on one axis.
function runs(d) {
	const w = 560, h = 92, all = d.a.duration_ns.concat(d.b.duration_ns), most = Math.max(...all, 1) * 1.05, x = v => 30 + (w - 50) * v / most;
	const s = svg("svg", {viewBox: `0 0 ${w} ${h}`, class: "hist", role: "img", "aria-label": "Durations of the runs. A: " + d.a.duration_ns.map(dur).join(", ") + ". B: " + d.b.duration_ns.map(dur).join(", ")});
	const text = (tx, ty, t, anchor) => { const e = svg("text", {x: tx, y: ty, "text-anchor": anchor || "start"}); e.textContent = t; s.append(e); };
	[["A", d.a, 24, "a"], ["B", d.b, 54, "b"]].forEach(([n, side, y, cls]) => {
		text(4, y + 4, n);
		s.append(svg("line", {x1: x(0), x2: w - 20, y1: y, y2: y, class: "axis"}));
		for (const v of side.duration_ns) s.append(svg("circle", {cx: x(v), cy: y, r: 6, class: cls}));
	});
	text(x(0), 84, "0"); text(w - 20, 84, dur(most), "end");
	return s;
}

function latencies(d) {
	if (!d.calls.length) { $("calls-slot").append(el("p", {class: "none"}, "No call took time on either side.")); return; }
	const words = d.tested === "runs" ? {more: "slower", less: "faster"} : {more: "slower in this run", less: "faster in this run"};
	const q = c => c.q != null ? c.q : c.call_q;
	$("calls-slot").append(table({caption: "Latencies of calls", rows: d.calls, thing: "kind", step: 15, filter: "Find", text: c => c.name + " " + (c.on || ""), by: 3,
		choices: [{name: "Show", value: "", options: [["", "all"], ["changed", "what changed"]], keep: c => c.verdict !== "same" && c.verdict !== "unknown"}],
		columns: [
			{name: "Call", of: c => c.name, show: c => c.name + (c.on ? " (" + c.on + ")" : "")},
			{name: "Median A", n: true, of: c => c.a, show: c => c.a_buckets.length ? dur(c.a) : "–"},
			{name: "Median B", n: true, of: c => c.b, show: c => c.b_buckets.length ? dur(c.b) : "–"},
			{name: "In all", n: true, of: c => Math.abs(c.b_total_ns - c.a_total_ns), show: c => (c.b_total_ns >= c.a_total_ns ? "+" : "−") + dur(Math.abs(c.b_total_ns - c.a_total_ns)), title: "by how much more time a run spends in these calls"},
			{name: "99% A", n: true, of: c => c.a_p99_ns, show: c => c.a_buckets.length ? dur(c.a_p99_ns) : "–"},
			{name: "99% B", n: true, of: c => c.b_p99_ns, show: c => c.b_buckets.length ? dur(c.b_p99_ns) : "–"},
			{name: "Calls A", n: true, of: c => c.a_count, show: c => grouped(c.a_count)},
			{name: "Calls B", n: true, of: c => c.b_count, show: c => grouped(c.b_count)},
			{name: "B longer", n: true, of: c => c.chance_b_longer, show: c => c.a_buckets.length && c.b_buckets.length ? percent(c.chance_b_longer) : "–", title: "chance that a call of B takes longer than one of A; 50%: no difference"},
			{name: "q", n: true, of: c => q(c) == null ? 2 : q(c), show: c => qText(q(c)), title: "corrected for how many kinds are compared"},
			{name: "Verdict", of: c => c.verdict, show: c => badge(c.verdict, words)}],
		detail: c => el("figure", {}, el("h3", {}, el("span", {class: "side a"}, "A"), " and ", el("span", {class: "side b"}, "B"), ", shares of each side's calls"),
			histogram([c.a_buckets, c.b_buckets], "Histograms of " + c.name + " on both sides: median " + dur(c.a) + " and " + dur(c.b)))}));
}

main();

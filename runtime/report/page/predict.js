// What a prediction says: here against there, and where the difference comes from.
// Classes of time: by what group's colour they are drawn, and what they are called.
const classes = {
	cpu: ["compute", "Computing"], ready: ["other", "Waiting for a core"], disk: ["disk", "Files"], locks: ["lock", "Waiting for locks"], waits: ["wait", "Waiting for other threads"],
	pipes: ["pipe", "Pipes, connections"], sleep: ["sleep", "Sleeping"], outside: ["network", "Outside of the run"],
};
const classGroup = c => classes[c] ? classes[c][0] : groupWords[c] ? c : "other";
const classWord = c => classes[c] ? classes[c][1] : groupWords[c] || c;
const classField = c => el("span", {class: "field"}, chip(classGroup(c)), classWord(c));
const sec = s => dur(s * 1e9);
const more = (a, b) => b - a >= 0 ? "+" + sec(b - a) : "−" + sec(a - b);

function prediction(p) {
	const slot = $("prediction-slot"), times = p.predicted_seconds / p.home_seconds;
	const low = p.low_seconds || p.predicted_seconds, high = p.high_seconds || p.predicted_seconds;
	const apart = low > p.home_seconds || high < p.home_seconds;
	slot.append(el("p", {class: "verdict"}, (p.target ? "On " + p.target + " the run" : "At the target the run") + " would take ", el("strong", {}, sec(p.predicted_seconds)), " (" + sec(low) + " to " + sec(high) + "); here it took " + sec(p.home_seconds) + ": " +
		(!apart ? "no difference that the prediction could tell." : times >= 1 ? digits(times) + " times as long." : digits(1 / times) + " times as fast.")));
	slot.append(el("dl", {class: "kpis"},
		el("div", {}, el("dt", {}, "Proven"), el("dd", {}, p.proven ? "yes" : "no", el("small", {}, p.proven ? "the program asks for the same events in that order" : "the program may take another path there"))),
		el("div", {}, el("dt", {}, "Rounds"), el("dd", {}, grouped(p.rounds || 0), el("small", {}, "between here and there"))),
		el("div", {}, el("dt", {}, "Noise here"), el("dd", {}, percent(p.noise || 0), el("small", {}, "how far runs lie apart")))));
	slot.append(interval(p, low, high));
	const by = (list, key) => {
		const m = new Map();
		for (const x of list) {
			const k = x[key], v = m.get(k) || {name: k, home: 0, target: 0, parts: []};
			v.home += x.home_seconds; v.target += x.target_seconds; v.parts.push(x);
			m.set(k, v);
		}
		return [...m.values()];
	};
	const pair = (caption, first, rows, show, detail) => {
		const most = Math.max(...rows.map(r => Math.max(r.home, r.target)), 1e-12);
		return table({caption, rows, thing: first.toLowerCase(), step: 12, by: 3, filter: rows.length > 12 ? "Find" : null, text: r => r.name, detail, columns: [
			{name: first, of: r => r.name, show},
			{name: "Here", n: true, of: r => r.home, show: r => sec(r.home)},
			{name: "There", n: true, of: r => r.target, show: r => sec(r.target)},
			{name: "Difference", n: true, of: r => Math.abs(r.target - r.home), show: r => el("span", {class: r.target > r.home * 1.01 ? "pos" : r.target < r.home * .99 ? "neg" : null}, more(r.home, r.target))},
			{name: "Here above, there below", show: r => {
				const s = svg("svg", {width: 180, height: 20, viewBox: "0 0 180 20", "aria-hidden": "true"});
				s.append(svg("rect", {x: 0, y: 2, height: 7, width: Math.max(1, 180 * r.home / most), class: "a"}), svg("rect", {x: 0, y: 11, height: 7, width: Math.max(1, 180 * r.target / most), class: "b"}));
				return s;
			}}]});
	};
	const classed = r => classField(r.name);
	const path = by(p.path_breakdown || [], "class"), all = p.breakdown || [];
	if (path.length) {
		const order = Object.keys(classes), words = {};
		for (const c in classes) words[classes[c][0]] = classes[c][1];
		const parts = side => order.flatMap(c => path.filter(x => x.name === c).map(x => [classGroup(c), x[side] * 1e9]));
		const here = parts("home"), there = parts("target"), sum = l => l.reduce((a, x) => a + x[1], 0), whole = Math.max(sum(here), sum(there));
		slot.append(el("h3", {}, "Where the difference comes from"), el("p", {class: "none"}, "By the path through the threads that decides how long the run takes: here the recorded run, " + dur(sum(here)) +
			"; there an issue of it, " + dur(sum(there)) + "."),
			el("dl", {class: "lines"}, el("dt", {}, "Here"), el("dd", {}, bar(here, whole, "", words)), el("dt", {}, "There"), el("dd", {}, bar(there, whole, "", words))),
			pair("The critical path by class, here and there", "Class", path, classed));
	}
	if (all.length) slot.append(el("h3", {}, path.length ? "All threads, by class" : "Where the difference comes from, by class"), pair("Time by class here and there", "Class", by(all, "class"), classed),
		el("h3", {}, "By thread"), pair("Time by thread here and there", "Thread", by(all, "thread"), r => r.name, r => simple("Classes of " + r.name, [
			{name: "Class", show: x => classField(x.class)}, {name: "Here", n: true, show: x => sec(x.home_seconds)}, {name: "There", n: true, show: x => sec(x.target_seconds)}, {name: "Difference", n: true, show: x => more(x.home_seconds, x.target_seconds)}],
			r.parts.slice().sort((a, b) => Math.abs(b.target_seconds - b.home_seconds) - Math.abs(a.target_seconds - a.home_seconds)))));
	const stretches = [...(p.critical_path || []).map(x => ({...x, side: "there"})), ...(p.home_critical_path || []).map(x => ({...x, side: "here"}))];
	if (stretches.length) slot.append(el("h3", {}, "What the path is made of"), table({caption: "What takes longest on the critical path", rows: stretches, thing: "stretch", step: 12, by: 3, filter: stretches.length > 12 ? "Find in the path" : null,
		text: x => [x.thread, classWord(x.class), x.call, x.object, x.at].join(" "),
		choices: [{name: "Where", value: "there", options: [["there", "There"], ["here", "Here"]], keep: (x, v) => x.side === v}], columns: [
			{name: "Thread", of: x => x.thread, show: x => x.thread, cls: "name"}, {name: "Class", of: x => x.class, show: x => classField(x.class)},
			{name: "What", of: x => x.call || "", cls: "name", show: x => el("span", {}, (x.call ? (x.class === "cpu" || x.class === "ready" ? "up to " : "") + x.call : "") + (x.object ? " " + x.object : ""), x.at ? el("div", {class: "none"}, x.at) : "")},
			{name: "Takes", n: true, of: x => x.seconds, show: x => sec(x.seconds)}, {name: "Times", n: true, of: x => x.times || 0, show: x => x.times ? grouped(x.times) : ""},
			{name: "Longest", n: true, of: x => x.longest_seconds || 0, show: x => x.longest_seconds ? sec(x.longest_seconds) : ""}]}));
	const change = s => (s <= 0 ? "−" : "+") + sec(Math.abs(s));
	if ((p.sensitivity || []).length) slot.append(el("h3", {}, "What would change it most"), table({caption: "By how much the predicted time changes with each resource", rows: p.sensitivity, thing: "resource", by: 1, down: false, columns: [
		{name: "If this were another", of: x => x.resource, show: x => x.resource + (x.how ? ": " + x.how : "")}, {name: "The run would take", n: true, of: x => x.seconds, show: x => change(x.seconds)},
		{name: "Known by", of: x => x.issues || 0, show: x => x.issues ? plural(x.issues, "issue") + ", " + change(x.low_seconds || 0) + " to " + change(x.high_seconds || 0) : "the path's share: at most so much"}]}));
	if ((p.notes || []).length) slot.append(el("ul", {class: "notes"}, p.notes.map(n => el("li", {}, n))));
}

// interval draws the time here and the interval there on one axis.
function interval(p, low, high) {
	const w = 560, h = 84, most = Math.max(high, p.home_seconds) * 1.08, x = v => 70 + (w - 90) * v / most;
	const s = svg("svg", {viewBox: `0 0 ${w} ${h}`, class: "hist", role: "img", "aria-label": "Here " + sec(p.home_seconds) + "; there " + sec(p.predicted_seconds) + ", between " + sec(low) + " and " + sec(high)});
	const text = (tx, ty, t, anchor) => { const e = svg("text", {x: tx, y: ty, "text-anchor": anchor || "start"}); e.textContent = t; s.append(e); };
	text(0, 25, "Here"); text(0, 53, "There");
	s.append(svg("line", {x1: x(0), x2: x(0), y1: 8, y2: 64, class: "axis"}),
		svg("rect", {x: x(0), y: 14, width: Math.max(1, x(p.home_seconds) - x(0)), height: 14, rx: 2, class: "a"}),
		svg("rect", {x: x(0), y: 42, width: Math.max(1, x(p.predicted_seconds) - x(0)), height: 14, rx: 2, class: "b"}));
	for (const v of [low, high]) s.append(svg("line", {x1: x(v), x2: x(v), y1: 39, y2: 59, class: "whisker"}));
	s.append(svg("line", {x1: x(low), x2: x(high), y1: 49, y2: 49, class: "whisker"}));
	text(x(0), 78, "0"); text(x(most) - 2, 78, sec(most), "end");
	return s;
}

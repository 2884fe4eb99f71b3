// The page of one trace, section by section.
async function main() {
	const r = JSON.parse(new TextDecoder().decode(await unpack("model")));
	let line = null;
	readColours();
	if (r.timeline.lanes.length) {
		lanesOf(r.timeline, await unpack("lines"));
		line = timeline(r.timeline, $("timeline-slot"));
	} else $("timeline-slot").append(el("p", {class: "none"}, "No thread has events."));
	glance(r);
	if (r.prediction) prediction(r.prediction);
	threads(r);
	locks(r, line);
	slow(r, line);
	calls(r);
	files(r);
	processes(r);
	themes(() => line && line.draw());
	sections();
	document.documentElement.dataset.ready = "true";
}

const looker = (line, ns, took) => line ? el("button", {type: "button", onclick: () => line.look(ns - Math.max(took, 1000) * 3, ns + Math.max(took, 1000) * 4)}, "Show in the timeline") : null;

function glance(r) {
	const parts = r.time.map(t => [t.group, t.ns]), all = parts.reduce((a, p) => a + p[1], 0);
	$("glance-slot").append(bar(parts, all), el("ul", {class: "keys"}, r.time.filter(t => t.ns > 0).sort((a, b) => b.ns - a.ns).map(t =>
		el("li", {}, chip(t.group), groupWords[t.group], el("b", {}, percent(t.ns / all)), el("span", {class: "none"}, dur(t.ns))))));
}

function threads(r) {
	const longest = Math.max(...r.threads.map(t => t.duration_ns), 1);
	$("threads-slot").append(table({caption: "Time of each thread", rows: r.threads, thing: "thread", step: 15, filter: "Find", text: t => t.name + " " + (t.label || ""), by: 1, columns: [
		{name: "Thread", of: t => t.name, show: t => t.name + (t.label ? " " + t.label : ""), cls: "name"},
		{name: "Lived", n: true, of: t => t.duration_ns, show: t => dur(t.duration_ns)},
		{name: "CPU", n: true, of: t => t.cpu_ns, show: t => dur(t.cpu_ns), title: "CPU time, as the kernel counted it"},
		{name: "Events", n: true, of: t => t.events, show: t => grouped(t.events)},
		{name: "Locks", n: true, of: t => t.time[4], show: t => dur(t.time[4])},
		{name: "Disk", n: true, of: t => t.time[1], show: t => dur(t.time[1])},
		{name: "Network", n: true, of: t => t.time[2], show: t => dur(t.time[2])},
		{name: "Where its time went", show: t => bar(t.time.map((v, i) => [groupNames[i], v]), longest, "thin")}]}));
}

// frames is a stack, the innermost function first.
const frames = (stack, site) => el("div", {}, stack[0], el("ol", {class: "stack"}, stack.slice(1).map(f => el("li", {}, f)), stack[0] === site ? null : el("li", {class: "none"}, "at " + site)));

function places(list, caption) {
	if (!list.length) return el("p", {class: "none"}, "Not known.");
	return simple(caption, [{name: "Place", show: p => p.stack ? frames(p.stack, p.site) : p.site, cls: "name"},
		{name: "Waits", n: true, show: p => grouped(p.times)}, {name: "Time", n: true, show: p => dur(p.ns)}], list);
}
const who = (list, caption) => list.length ? simple(caption, [{name: "Thread", show: w => w.thread, cls: "name"}, {name: "Waits", n: true, show: w => grouped(w.times)}, {name: "Time", n: true, show: w => dur(w.ns)}], list)
	: el("p", {class: "none"}, "Not known.");

const lockKinds = {mutex: "lock", rwlock: "lock", spin: "lock", once: "lock", guard: "lock", stdio: "lock", fd: "lock"};
const kindWords = {mutex: "mutex", rwlock: "read-write lock", cond: "condition", barrier: "barrier", sem: "semaphore", spin: "spin lock", once: "once", guard: "static variable", stdio: "stream", semset: "set of semaphores"};

function locks(r, line) {
	if (!r.locks.length) { $("locks-slot").append(el("p", {class: "none"}, "No thread waited for a lock or a condition.")); return; }
	const isLock = l => !!lockKinds[l.kind];
	const held = l => isLock(l) ? "had it" : "woke or came last";
	$("locks-slot").append(table({caption: "What threads waited at", rows: r.locks, thing: "object", step: 12, filter: "Find", text: l => l.name + " " + l.causes.map(w => w.thread).join(" "), by: 2,
		choices: [{name: "Show", value: r.locks.some(isLock) ? "lock" : "", options: [["lock", "locks"], ["event", "conditions, barriers, semaphores"], ["", "all"]], keep: (l, v) => isLock(l) === (v === "lock")}],
		columns: [
			{name: "Object", of: l => l.name, show: l => l.name, cls: "name"},
			{name: "Kind", of: l => l.kind, show: l => kindWords[l.kind] || l.kind},
			{name: "Waited", n: true, of: l => l.wait_ns, show: l => dur(l.wait_ns), title: "time of all waits together"},
			{name: "Waits", n: true, of: l => l.waits, show: l => grouped(l.waits)},
			{name: "Taken", n: true, of: l => l.taken, show: l => l.taken ? grouped(l.taken) : "–"},
			{name: "Median", n: true, of: l => l.p50_ns, show: l => dur(l.p50_ns)},
			{name: "Longest", n: true, of: l => l.max_ns, show: l => dur(l.max_ns)},
			{name: "Held", n: true, of: l => l.held_ns, show: l => l.held_ns ? dur(l.held_ns) : "–", title: "time that threads had it, of those whose taking and freeing is known"},
			{name: "Most waited for", of: l => l.causes.length ? l.causes[0].thread : "", show: l => l.causes.length ? l.causes[0].thread : "–", cls: "name"}],
		detail: l => el("div", {class: "parts"},
			el("div", {}, el("h3", {}, "Who waited"), who(l.waiters, "Who waited")),
			el("div", {}, el("h3", {}, "Who " + held(l)), who(l.causes, "Who " + held(l))),
			el("div", {}, el("h3", {}, "Where they waited"), places(l.waited_at, "Where they waited")),
			el("div", {}, el("h3", {}, isLock(l) ? "Where it had been taken" : "Where they were woken from"), places(l.caused_at, "Where it was taken")),
			el("figure", {}, el("h3", {}, "How long the waits took"), histogram([l.buckets], "Histogram of waits: half took at most " + dur(l.p50_ns) + ", 99% at most " + dur(l.p99_ns))),
			el("div", {}, el("h3", {}, "The longest wait"), el("p", {}, dur(l.max_ns) + ", from " + at(l.max_at_ns, l.max_ns)), looker(line, l.max_at_ns, l.max_ns)))}));
}

function slow(r, line) {
	const groups = groupNames.filter(g => r.slow_calls.some(c => c.group === g));
	if (!groups.length) { $("slow-slot").append(el("p", {class: "none"}, "No call took time of its own.")); return; }
	$("slow-slot").append(table({caption: "The slowest calls", rows: r.slow_calls, thing: "call", step: 12, filter: "Find", text: c => c.call + " " + c.what + " " + c.thread + " " + c.text + " " + c.site, by: 1,
		choices: [{name: "Class", value: "", options: [["", "all"], ...groups.map(g => [g, groupWords[g]])], keep: (c, v) => c.group === v}],
		columns: [
			{name: "Call", of: c => c.call, show: c => c.call},
			{name: "Took", n: true, of: c => c.ns, show: c => dur(c.ns)},
			{name: "Class", of: c => c.group, show: c => el("span", {class: "field"}, chip(c.group), groupWords[c.group])},
			{name: "On", of: c => c.what, show: c => c.what, cls: "name"},
			{name: "Thread", of: c => c.thread, show: c => c.thread, cls: "name"},
			{name: "At", n: true, of: c => c.at_ns, show: c => at(c.at_ns, 1e6)}],
		detail: c => el("div", {}, el("p", {class: "mono"}, c.text), el("p", {class: "facts"}, "Event " + grouped(c.event) + " of thread " + c.thread + (c.site ? ", called at " : ""), c.site ? el("code", {}, c.site) : null),
			c.stack ? el("ol", {class: "stack"}, c.stack.map(f => el("li", {}, f))) : null, el("p", {}, looker(line, c.at_ns, c.ns)))}));
}

function calls(r) {
	if (!r.calls.length) { $("calls-slot").append(el("p", {class: "none"}, "No call was made.")); return; }
	const axis = decades(r.calls.map(c => c.buckets));
	$("calls-slot").append(table({caption: "How long calls took", rows: r.calls, thing: "kind", step: 12, filter: "Find", text: c => c.call + " " + (c.on || "") + " " + c.class, by: 2,
		columns: [
			{name: "Call", of: c => c.call, show: c => c.call + (c.on ? " (" + c.on + ")" : "")},
			{name: "Count", n: true, of: c => c.count, show: c => grouped(c.count)},
			{name: "Total", n: true, of: c => c.ns, show: c => dur(c.ns)},
			{name: "Failed", n: true, of: c => c.failed, show: c => c.failed ? grouped(c.failed) : "–"},
			{name: "Median", n: true, of: c => c.p50_ns, show: c => c.timed ? dur(c.p50_ns) : "–"},
			{name: "90%", n: true, of: c => c.p90_ns, show: c => c.timed ? dur(c.p90_ns) : "–", title: "nine in ten took at most that"},
			{name: "99%", n: true, of: c => c.p99_ns, show: c => c.timed ? dur(c.p99_ns) : "–", title: "99 in 100 took at most that"},
			{name: "Longest", n: true, of: c => c.max_ns, show: c => c.timed ? dur(c.max_ns) : "–"},
			{name: "From short to long", show: c => c.timed ? spark(c.buckets, axis) : el("span", {class: "none"}, "took no time")}],
		detail: c => el("div", {class: "parts"}, el("figure", {}, el("h3", {}, "How long " + c.call + " took, of " + plural(c.timed, "call") + " that took time"),
			c.timed ? histogram([c.buckets], "Histogram of " + c.call + ": half took at most " + dur(c.p50_ns) + ", 99% at most " + dur(c.p99_ns)) : el("p", {class: "none"}, "All returned at once.")),
			el("div", {}, el("h3", {}, "As a table"), simple("Times of " + c.call, [{name: "At most", n: true, show: x => dur(x[0])}, {name: "Calls", n: true, show: x => grouped(x[1])}, {name: "Share", n: true, show: x => percent(x[1] / c.timed)}], decadesOf(c.buckets))))}));
}

// decadesOf adds buckets up by powers of ten.
function decadesOf(buckets) {
	const m = new Map();
	for (const b of buckets) { const k = Math.pow(10, Math.max(1, Math.ceil(Math.log10(Math.max(b.to_ns, 1)) - 1e-9))); m.set(k, (m.get(k) || 0) + b.count); }
	return [...m].sort((a, b) => a[0] - b[0]);
}

function files(r) {
	const columns = last => [
		{name: "Name", of: f => f.name, show: f => f.name, cls: "name"},
		{name: "Time", n: true, of: f => f.ns, show: f => dur(f.ns)},
		{name: "Calls", n: true, of: f => f.calls, show: f => grouped(f.calls)},
		{name: "Read", n: true, of: f => f.read_bytes, show: f => f.reads ? size(f.read_bytes) : "–"},
		{name: "Written", n: true, of: f => f.written_bytes, show: f => f.writes ? size(f.written_bytes) : "–"},
		...last,
		{name: "Opened", n: true, of: f => f.opens, show: f => f.opens ? grouped(f.opens) : "–"},
		{name: "Longest", n: true, of: f => f.max_ns, show: f => dur(f.max_ns)}];
	const put = (slot, rows, caption, thing, none, last) => $(slot).append(rows.length ? table({caption, rows, thing, step: 12, filter: "Find", text: f => f.name, by: 1, columns: columns(last)}) : el("p", {class: "none"}, none));
	put("files-slot", r.files, "Files", "file", "No file was used.", [
		{name: "Syncs", n: true, of: f => f.syncs, show: f => f.syncs ? grouped(f.syncs) : "–"},
		{name: "In syncs", n: true, of: f => f.sync_ns, show: f => f.syncs ? dur(f.sync_ns) : "–"}]);
	put("conns-slot", r.connections, "Connections, pipes and terminals", "connection", "No connection, pipe or terminal was used.", [
		{name: "Kind", of: f => f.kind, show: f => f.kind}]);
}

// processes are in the order of a tree; each line shows when the process lived.
function processes(r) {
	const run = Math.max(r.run.duration_ns, 1), kids = new Map(), rows = [];
	r.processes.forEach((p, i) => { const k = p.parent >= 0 && p.parent < r.processes.length ? p.parent : -1; kids.set(k, (kids.get(k) || []).concat(i)); });
	const seen = new Set(), todo = (kids.get(-1) || []).map(i => [i, 0]).reverse();
	while (todo.length) {
		const [i, depth] = todo.pop();
		if (seen.has(i)) continue;
		seen.add(i);
		rows.push({p: r.processes[i], depth, place: rows.length});
		for (const k of (kids.get(i) || []).slice().reverse()) todo.push([k, depth + 1]);
	}
	const life = p => {
		const x = 150 * p.start_ns / run, w = Math.max(2, 150 * p.duration_ns / run);
		return svg("svg", {width: 150, height: 14, viewBox: "0 0 150 14", role: "img", "aria-label": "from " + at(p.start_ns, run) + " for " + dur(p.duration_ns)},
			svg("rect", {x: 0, y: 4, width: 150, height: 6, rx: 3, class: "track"}), svg("rect", {x: Math.min(148, x), y: 4, width: Math.min(w, 150 - Math.min(148, x)), height: 6, rx: 2, class: "life"}));
	};
	$("processes-slot").append(table({caption: "Processes, children below their parents", rows, thing: "process", step: 25, filter: "Find", text: x => x.p.name + " " + x.p.command, by: 0, down: false, columns: [
		{name: "Process", of: x => x.place, show: x => { const s = el("span", {}, x.depth ? el("span", {class: "none", "aria-hidden": "true"}, "└\u00a0") : null, x.p.name); s.style.paddingLeft = Math.min(x.depth, 8) * .6 + "rem"; return s; }, cls: "name", title: "in the order of the tree"},
		{name: "Command", of: x => x.p.command, show: x => x.p.command || x.p.exe || x.p.how, cls: "name"},
		{name: "Pid", n: true, of: x => x.p.pid, show: x => x.p.pid || "–"},
		{name: "Threads", n: true, of: x => x.p.threads, show: x => grouped(x.p.threads)},
		{name: "CPU", n: true, of: x => x.p.cpu_ns, show: x => dur(x.p.cpu_ns)},
		{name: "Memory", n: true, of: x => x.p.peak_resident_bytes, show: x => x.p.peak_resident_bytes ? size(x.p.peak_resident_bytes) : "–", title: "resident, at most"},
		{name: "Lived", of: x => x.p.start_ns, show: x => life(x.p)},
		{name: "End", of: x => x.p.end, show: x => x.p.end || "–", cls: "end"}]}));
}

main();

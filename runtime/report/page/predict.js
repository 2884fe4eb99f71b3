// What a prediction says: here against there, and where the difference comes from.
const classGroup = c => groupWords[c] ? c : {cpu: "compute", net: "network", sync: "lock", lock_wait: "lock", time: "sleep", files: "disk"}[c] || "other";
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
	const by = key => {
		const m = new Map();
		for (const x of p.breakdown || []) {
			const k = x[key], v = m.get(k) || {name: k, home: 0, target: 0, parts: []};
			v.home += x.home_seconds; v.target += x.target_seconds; v.parts.push(x);
			m.set(k, v);
		}
		return [...m.values()];
	};
	const pair = (caption, first, rows, detail) => {
		const most = Math.max(...rows.map(r => Math.max(r.home, r.target)), 1e-12);
		return table({caption, rows, thing: first.toLowerCase(), step: 12, by: 3, filter: rows.length > 12 ? "Find" : null, text: r => r.name, detail, columns: [
			{name: first, of: r => r.name, show: r => r.name},
			{name: "Here", n: true, of: r => r.home, show: r => sec(r.home)},
			{name: "There", n: true, of: r => r.target, show: r => sec(r.target)},
			{name: "Difference", n: true, of: r => Math.abs(r.target - r.home), show: r => el("span", {class: r.target > r.home * 1.01 ? "pos" : r.target < r.home * .99 ? "neg" : null}, more(r.home, r.target))},
			{name: "Here above, there below", show: r => {
				const s = svg("svg", {width: 180, height: 20, viewBox: "0 0 180 20", "aria-hidden": "true"});
				s.append(svg("rect", {x: 0, y: 2, height: 7, width: Math.max(1, 180 * r.home / most), class: "a"}), svg("rect", {x: 0, y: 11, height: 7, width: Math.max(1, 180 * r.target / most), class: "b"}));
				return s;
			}}]});
	};
	const classes = by("class").map(c => ({...c, name: groupWords[c.name] || c.name}));
	if (classes.length) slot.append(el("h3", {}, "Where the difference comes from, by class"), pair("Time by class here and there", "Class", classes),
		el("h3", {}, "By thread"), pair("Time by thread here and there", "Thread", by("thread"), r => simple("Classes of " + r.name, [
			{name: "Class", show: x => groupWords[x.class] || x.class}, {name: "Here", n: true, show: x => sec(x.home_seconds)}, {name: "There", n: true, show: x => sec(x.target_seconds)}, {name: "Difference", n: true, show: x => more(x.home_seconds, x.target_seconds)}],
			r.parts.slice().sort((a, b) => Math.abs(b.target_seconds - b.home_seconds) - Math.abs(a.target_seconds - a.home_seconds)))));
	const path = p.critical_path || [];
	if (path.length) {
		const m = new Map();
		for (const x of path) { const g = classGroup(x.class); m.set(g, (m.get(g) || 0) + x.seconds * 1e9); }
		const parts = groupNames.filter(g => m.has(g)).map(g => [g, m.get(g)]), all = parts.reduce((a, x) => a + x[1], 0);
		slot.append(el("h3", {}, "The path that decides how long it takes there"), bar(parts, all), table({caption: "Stretches of the critical path", rows: path.map((x, i) => ({...x, i})), thing: "stretch", step: 8, by: 3, columns: [
			{name: "Thread", of: x => x.thread, show: x => x.thread, cls: "name"}, {name: "Class", of: x => x.class, show: x => groupWords[x.class] || x.class},
			{name: "Place", n: true, of: x => x.i, show: x => grouped(x.i + 1)}, {name: "Takes", n: true, of: x => x.seconds, show: x => sec(x.seconds)}]}));
	}
	if ((p.sensitivity || []).length) slot.append(el("h3", {}, "What would change it"), table({caption: "By how much the predicted time changes with each resource", rows: p.sensitivity, thing: "resource", by: 1, columns: [
		{name: "If this were a tenth faster", of: x => x.resource, show: x => x.resource}, {name: "the run would take", n: true, of: x => Math.abs(x.seconds), show: x => (x.seconds <= 0 ? "−" : "+") + sec(Math.abs(x.seconds))}]}));
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

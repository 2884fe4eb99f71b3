// Tables that sort by each column, filter by text, grow by steps, and open rows.
//
// columns: {name, of: row => value to sort by, show: row => text or element, n: is a number, cls, first: "down"|"up"}
function table(o) {
	const step = o.step || 20;
	let shown = step, by = o.by || 0, down = o.down !== false, words = "";
	const open = new Set();
	const body = el("tbody"), status = el("span", {role: "status", tabindex: "-1"}), said = el("span", {class: "sr", role: "status"}), more = el("button", {type: "button"}, "Show more");
	const heads = o.columns.map((c, i) => {
		const arrow = el("span", {"aria-hidden": "true"});
		const th = el("th", {scope: "col", class: c.n ? "n" : null}, c.of ? el("button", {type: "button", title: c.title || null, onclick: () => {
			if (by === i) down = !down;
			else { by = i; down = !!c.n; }
			fill();
			said.textContent = "Sorted by " + c.name + ", " + (down ? "descending" : "ascending");
		}}, c.name, arrow) : c.name);
		th.arrow = arrow;
		return th;
	});
	const view = el("table", {}, el("caption", {class: o.captioned ? null : "sr"}, o.caption), el("thead", {}, el("tr", {}, heads)), body);
	const tools = el("div", {class: "tools"});
	const filter = o.filter && o.rows.length > 5;
	if (filter) {
		const id = "f" + Math.random().toString(36).slice(2);
		tools.append(el("div", {class: "field"}, el("label", {for: id}, o.filter), el("input", {type: "search", id, oninput: e => search(e.target.value), onkeydown: e => { if (e.key === "Escape" && e.target.value) { e.preventDefault(); search(e.target.value = ""); } }})));
	}
	function search(s) { words = s.toLowerCase(); shown = step; fill(); }
	for (const c of o.choices || []) {
		const id = "c" + Math.random().toString(36).slice(2);
		tools.append(el("div", {class: "field"}, el("label", {for: id}, c.name), el("select", {id, onchange: e => { c.value = e.target.value; shown = step; fill(); }},
			c.options.map(([v, t]) => el("option", {value: v, selected: v === c.value}, t)))));
	}
	// Who asked for more goes on with the first row that came.
	more.addEventListener("click", () => {
		const had = new Set([...body.rows].map(tr => tr.row));
		shown += 5 * step;
		fill();
		const first = [...body.rows].find(tr => tr.row && !had.has(tr.row)), b = first && first.querySelector("button");
		if (b) b.focus();
		else if (more.hidden) status.focus();
	});
	// Escape closes an open row, from within it too.
	body.addEventListener("keydown", e => {
		const tr = e.key === "Escape" && e.target.closest("tbody tr");
		const r = tr && (tr.row || tr.previousSibling && tr.previousSibling.row);
		if (!r || !open.delete(r)) return;
		e.stopPropagation();
		fill();
		again(r);
	});

	function fill() {
		const col = o.columns[by];
		let rows = o.rows;
		for (const c of o.choices || []) if (c.value !== "") rows = rows.filter(r => c.keep(r, c.value));
		if (words) rows = rows.filter(r => o.text(r).toLowerCase().includes(words));
		if (col && col.of) {
			const sign = down ? -1 : 1;
			rows = rows.map((r, i) => [col.of(r), i, r]).sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : 0) || a[1] - b[1]).map(x => x[2]);
		}
		heads.forEach((th, i) => {
			if (!o.columns[i].of) return;
			i === by ? th.setAttribute("aria-sort", down ? "descending" : "ascending") : th.removeAttribute("aria-sort");
			th.arrow.textContent = i === by ? (down ? "↓" : "↑") : "";
		});
		body.replaceChildren(...rows.slice(0, shown).flatMap(one));
		const text = rows.length === o.rows.length ? plural(rows.length, o.thing || "row") + (rows.length > shown ? ", " + grouped(shown) + " shown" : "") :
			grouped(rows.length) + " of " + plural(o.rows.length, o.thing || "row") + (rows.length > shown ? ", " + grouped(shown) + " shown" : "");
		if (text !== status.textContent) status.textContent = text;
		more.hidden = rows.length <= shown;
		after.hidden = o.rows.length <= 3 && !filter;
	}
	function one(r) {
		const cells = o.columns.map((c, i) => {
			let v = c.show(r);
			if (i === 0 && o.detail) {
				const b = el("button", {type: "button", class: "more", "aria-expanded": String(open.has(r)), onclick: () => { open.has(r) ? open.delete(r) : open.add(r); fill(); again(r); }}, v);
				v = b;
			}
			return el("td", {class: [c.n ? "n" : "", c.cls || ""].join(" ").trim() || null}, v);
		});
		const tr = el("tr", {}, cells);
		tr.row = r;
		return open.has(r) ? [tr, el("tr", {class: "detail"}, el("td", {colspan: o.columns.length}, o.detail(r)))] : [tr];
	}
	function again(r) {
		for (const tr of body.rows) if (tr.row === r) tr.querySelector("button").focus();
	}
	const after = el("div", {class: "after"}, status, more);
	const all = el("div", {}, tools.childElementCount ? tools : null, wide(o.caption, view), after, said);
	all.refill = rows => { o.rows = rows; shown = step; fill(); };
	fill();
	return all;
}

// wide is room for a table, which scrolls sideways where that is narrow: then, and only then, it is a stop of the Tab key.
function wide(caption, view) {
	const d = el("div", {class: "wide"}, view), is = {role: "region", "aria-label": "Table: " + caption, tabindex: "0"};
	const fit = () => { const scrolls = d.scrollWidth > d.clientWidth + 1; for (const k in is) scrolls ? d.setAttribute(k, is[k]) : d.removeAttribute(k); };
	const watch = new ResizeObserver(fit);
	watch.observe(d);
	watch.observe(view);
	return d;
}

// simple is a small table that does not change.
function simple(caption, columns, rows) {
	if (!rows.length) return el("p", {class: "none"}, "Nothing.");
	return wide(caption, el("table", {}, el("caption", {class: "sr"}, caption),
		el("thead", {}, el("tr", {}, columns.map(c => el("th", {scope: "col", class: c.n ? "n" : null}, c.name)))),
		el("tbody", {}, rows.map(r => el("tr", {}, columns.map(c => el("td", {class: [c.n ? "n" : "", c.cls || ""].join(" ").trim() || null}, c.show(r))))))));
}

// decades are the ends of the axis of durations: whole powers of ten around all buckets.
function decades(lists) {
	let lo = Infinity, hi = 0;
	for (const l of lists) for (const b of l) { lo = Math.min(lo, Math.max(b.from_ns, 1)); hi = Math.max(hi, b.to_ns); }
	if (!hi) return [0, 1];
	return [Math.floor(Math.log10(lo) + 1e-9), Math.max(Math.ceil(Math.log10(hi) - 1e-9), Math.floor(Math.log10(lo) + 1e-9) + 1)];
}

// columnsOf spreads buckets over columns of a logarithmic axis, as shares of all.
function columnsOf(buckets, from, to, n) {
	const out = new Float64Array(n);
	let all = 0;
	for (const b of buckets) {
		const lo = (Math.log10(Math.max(b.from_ns, 1)) - from) / (to - from) * n, hi = (Math.log10(Math.max(b.to_ns, 1.0001)) - from) / (to - from) * n;
		all += b.count;
		let x = Math.max(0, lo);
		const end = Math.min(n, Math.max(hi, lo + 1e-6));
		while (x < end) {
			const next = Math.min(end, Math.floor(x) + 1);
			out[Math.min(n - 1, Math.floor(x))] += b.count * (next - x) / (end - Math.max(0, lo));
			x = next;
		}
	}
	if (all) for (let i = 0; i < n; i++) out[i] /= all;
	return out;
}

// histogram draws one or two lists of buckets over the same axis of durations.
function histogram(lists, label) {
	const [from, to] = decades(lists), w = 560, h = 150, left = 40, base = h - 22, n = Math.min(120, 16 * (to - from));
	const s = svg("svg", {viewBox: `0 0 ${w} ${h}`, class: "hist", role: "img", "aria-label": label});
	const cols = lists.map(l => columnsOf(l, from, to, n));
	const top = Math.max(...cols.map(c => Math.max(...c)), 1e-9);
	const tens = ["1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s", "100 s", "1 000 s", "10 000 s"];
	for (let d = from; d <= to; d++) {
		const x = left + (w - left - 14) * (d - from) / (to - from);
		s.append(svg("line", {x1: x, x2: x, y1: 8, y2: base, class: "axis"}));
		if (d < to || to - from < 9) { const t = svg("text", {x, y: h - 7, "text-anchor": d === to ? "end" : "middle"}); t.textContent = tens[d] || ""; s.append(t); }
	}
	const t = svg("text", {x: left - 5, y: 14, "text-anchor": "end"});
	t.textContent = percent(top);
	s.append(t, svg("line", {x1: left, x2: w - 14, y1: base, y2: base, class: "axis"}));
	cols.forEach((c, k) => {
		let d = "";
		const cw = (w - left - 14) / n, pad = lists.length > 1 ? 0 : Math.min(1, cw / 5);
		for (let i = 0; i < n; i++) if (c[i] > 0) {
			const y = Math.max(1, (base - 8) * c[i] / top);
			d += `M${(left + i * cw).toFixed(1)} ${base}v${(-y).toFixed(1)}h${(cw - pad).toFixed(1)}v${y.toFixed(1)}z`;
		}
		s.append(svg("path", {d, class: k ? "b" : "a"}));
	});
	return s;
}

// spark is a histogram of a table's row.
function spark(buckets, [from, to]) {
	const n = 48, c = columnsOf(buckets, from, to, n), top = Math.max(...c, 1e-9);
	let d = "";
	for (let i = 0; i < n; i++) if (c[i] > 0) { const y = Math.max(1, 18 * c[i] / top); d += `M${i * 3} 20v${-y.toFixed(1)}h2.4v${y.toFixed(1)}z`; }
	return svg("svg", {width: 144, height: 22, viewBox: "0 0 144 22", "aria-hidden": "true"}, svg("line", {x1: 0, x2: 144, y1: 20.5, y2: 20.5, class: "axis"}), svg("path", {d, class: "a"}));
}

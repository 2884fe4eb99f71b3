// The timeline: what every thread did, from the whole run down to single calls. A wide stretch is drawn from shares of
// time by group (levels made by halving the finest), a narrow one from the calls themselves. Only what shows is drawn.

// lanesOf takes the binary block apart; see Timeline.Data.
function lanesOf(t, buf) {
	const bytes = new Uint8Array(buf), G = groupNames.length, view = new DataView(buf);
	let at = 0;
	for (const l of t.lanes) {
		l.levels = [bytes.subarray(at, at + G * t.bins)];
		at += G * t.bins;
		for (let n = t.bins; n > 16; n /= 2) {
			const f = l.levels[l.levels.length - 1], c = new Uint8Array(G * n / 2);
			for (let g = 0; g < G; g++) for (let i = 0; i < n / 2; i++) {
				const sum = f[g * n + 2 * i] + f[g * n + 2 * i + 1];
				c[g * n / 2 + i] = sum + 1 >> 1;
			}
			l.levels.push(c);
		}
	}
	const floats = () => { const f = new Float32Array(t.overview); for (let i = 0; i < f.length; i++, at += 4) f[i] = view.getFloat32(at, true); return f; };
	t.over = groupNames.map(floats);
	t.counts = {};
	for (const c of t.counters) t.counts[c] = floats();
	const varint = () => {
		let v = 0, k = 1;
		for (;;) { const b = bytes[at++]; v += (b & 127) * k; if (b < 128) return v; k *= 128; }
	};
	for (const l of t.lanes) {
		const n = l.slices;
		l.begin = new Float64Array(n); l.took = new Float64Array(n); l.kind = new Uint16Array(n); l.label = new Uint32Array(n);
		let now = 0;
		for (let i = 0; i < n; i++) l.begin[i] = now += varint();
		for (let i = 0; i < n; i++) l.took[i] = varint();
		for (let i = 0; i < n; i++) l.kind[i] = varint();
		for (let i = 0; i < n; i++) l.label[i] = varint();
	}
}

// firstAfter is the first call of a lane that ends behind a time.
function firstAfter(l, ns) {
	let lo = 0, hi = l.begin.length;
	while (lo < hi) { const m = lo + hi >> 1; l.begin[m] + l.took[m] > ns ? hi = m : lo = m + 1; }
	return lo;
}

const rowH = 17, rowGap = 3, axisH = 24;

function timeline(t, slot) {
	const run = Math.max(t.duration_ns, 1), G = groupNames.length;
	let from = 0, to = run, words = "", rows = t.lanes, hidden = new Set(), picked = null, lane = 0, dirty = false, gutter = 120;
	let nameOn = null, labelOn = null;

	const map = el("canvas", {id: "map", tabindex: "0", role: "slider", "aria-label": "Stretch of the run that is shown", "aria-describedby": "timeline-keys", "aria-valuemin": "0", "aria-valuemax": "100", "aria-valuenow": "0"});
	const lanes = el("canvas", {id: "lanes", tabindex: "0", role: "application", "aria-label": "Timeline of threads", "aria-describedby": "timeline-keys"});
	const counts = el("canvas", {id: "counts", role: "img", "aria-label": "Events, memory and bytes over time"});
	const pin = el("div", {class: "pin"}, lanes), tall = el("div", {}, pin), scroll = el("div", {class: "scroll", tabindex: "-1"}, tall);
	const tip = el("div", {class: "tip", hidden: true});
	const status = el("p", {class: "status", role: "status", id: "range"});
	const pick = el("div", {class: "picked", hidden: true});
	const said = el("p", {class: "sr", role: "status", id: "said"}); // what the keys chose, for who does not see it
	const inView = el("div", {});
	const button = (text, label, f) => el("button", {type: "button", "aria-label": label, title: label, onclick: f}, text);
	const key = (sign, name) => el("kbd", {}, name ? [el("span", {"aria-hidden": "true"}, sign), el("span", {class: "sr"}, name)] : sign);

	const tools = el("div", {class: "tools"},
		el("div", {class: "buttons", role: "group", "aria-label": "Zoom and move"},
			button("+", "Zoom in", () => zoom(.5)), button("−", "Zoom out", () => zoom(2)),
			button("←", "Earlier", () => move(-.3)), button("→", "Later", () => move(.3)), button("All", "All: show the whole run", () => set(0, run))),
		el("div", {class: "field"}, el("label", {for: "find"}, "Find"), el("input", {type: "search", id: "find", placeholder: "call, file, lock or thread", oninput: e => { words = e.target.value.trim().toLowerCase(); search(); }})));
	const checks = el("div", {class: "tools", role: "group", "aria-label": "What is drawn"}, groupNames.map(g => {
		const c = el("input", {type: "checkbox", checked: true, onchange: e => { e.target.checked ? hidden.delete(g) : hidden.add(g); draw(); list(); }});
		return el("label", {class: "check"}, c, chip(g), groupWords[g]);
	}));
	slot.append(tools, checks, el("div", {class: "stage"}, map, scroll, counts), status, said, pick,
		el("p", {class: "lead"}, "Drag to move, ", el("kbd", {}, "Ctrl"), " and the wheel or two fingers to zoom, double click to look closer. ", el("span", {id: "timeline-keys"}, "With the keyboard: ",
			key("←", "left"), " ", key("→", "right"), " move, ", key("+", "plus"), " ", key("−", "minus"), " zoom, ", key("0"), " or ", key("Esc", "Escape"), " shows all, ", key("↑", "up"), " ", key("↓", "down"), " choose a thread, ",
			key("n"), " ", key("p"), " go from call to call.")), inView, tip);

	const x2t = (x, w) => from + (to - from) * (x - gutter) / Math.max(1, w - gutter);
	const matches = s => s.toLowerCase().includes(words);

	function search() {
		nameOn = labelOn = null;
		rows = t.lanes;
		if (words) {
			const byThread = t.lanes.filter(l => matches(l.name));
			const n = t.names.map(matches), m = t.labels.map((s, i) => i > 0 && matches(s));
			if (n.some(x => x) || m.some(x => x)) {
				nameOn = n; labelOn = m;
				rows = t.lanes.filter(l => matches(l.name) || some(l));
			} else rows = byThread;
		}
		lane = 0;
		layout();
		list();
	}
	function some(l) { for (let i = 0; i < l.kind.length; i++) if (nameOn[l.kind[i]] || labelOn[l.label[i]]) return true; return false; }
	const on = (l, i) => !hidden.has(groupNames[t.groups_of[l.kind[i]]]) && (!nameOn || nameOn[l.kind[i]] || labelOn[l.label[i]]);

	function set(a, b) {
		const least = Math.min(run, 100), len = Math.max(least, Math.min(run, b - a));
		from = Math.max(0, Math.min(run - len, a));
		to = from + len;
		draw();
		listSoon();
	}
	function zoom(by, around) {
		const c = around == null ? (from + to) / 2 : around;
		set(c - (c - from) * by, c + (to - c) * by);
	}
	const move = by => set(from + (to - from) * by, to + (to - from) * by);

	function prepare(c, w, h) {
		const k = window.devicePixelRatio || 1;
		if (c.width !== Math.round(w * k) || c.height !== Math.round(h * k)) { c.width = Math.round(w * k); c.height = Math.round(h * k); c.style.height = h + "px"; }
		const g = c.getContext("2d");
		g.setTransform(k, 0, 0, k, 0, 0);
		g.clearRect(0, 0, w, h);
		g.font = "12px system-ui, sans-serif";
		g.textBaseline = "middle";
		return g;
	}

	// layout fits the scrolled height and the canvas into it.
	function layout() {
		gutter = slot.clientWidth < 560 ? 76 : 130;
		const h = axisH + Math.max(1, rows.length) * (rowH + rowGap) + rowGap;
		const most = Math.max(140, Math.min(640, innerHeight * .66));
		tall.style.height = h + "px";
		pin.style.height = Math.min(h, most) + "px";
		draw();
	}

	function draw() {
		if (dirty) return;
		dirty = true;
		requestAnimationFrame(() => { if (dirty) now(); });
	}
	function now() { dirty = false; drawMap(); drawLanes(); drawCounts(); say(); }

	function say() {
		const len = to - from;
		const text = (from === 0 && to === run ? "The whole run, " + dur(run) : dur(len) + " from " + at(from, len) + " to " + at(to, len)) +
			"; " + plural(rows.length, "thread") + (words ? " of " + t.lanes.length : "");
		if (text !== status.textContent) status.textContent = text; // who listens hears of changes alone
		map.setAttribute("aria-valuenow", Math.round(100 * (from + to) / 2 / run));
		map.setAttribute("aria-valuetext", text);
		slot.dataset.from = from; slot.dataset.to = to;
	}

	// The overview is drawn anew only when its size, the colours or what is hidden has changed.
	const bitmap = document.createElement("canvas");
	let drawnMap = "", most = 1e-9;
	function mapBitmap(w, h) {
		const key = [w, h, window.devicePixelRatio, [...hidden], colours.compute].join();
		if (key === drawnMap) return;
		drawnMap = key;
		const g = prepare(bitmap, w, h), n = t.overview, k = bitmap.width / w;
		g.setTransform(1, 0, 0, 1, 0, 0);
		most = 1e-9;
		for (let i = 0; i < n; i++) { let sum = 0; for (const o of t.over) sum += o[i]; most = Math.max(most, sum); }
		const high = (h - 8) * k, bottom = (h - 2) * k, base = new Float32Array(bitmap.width);
		for (let q = 0; q < G; q++) {
			if (hidden.has(groupNames[q])) continue;
			g.fillStyle = colours[groupNames[q]];
			for (let x = 0; x < bitmap.width; x++) {
				const v = t.over[q][Math.min(n - 1, Math.floor(n * (x + .5) / bitmap.width))] / most;
				if (v <= 0) continue;
				const y0 = Math.round(high * base[x]), y1 = Math.round(high * (base[x] + v));
				g.fillRect(x, bottom - y1, 1, y1 - y0);
				base[x] += v;
			}
		}
	}

	function drawMap() {
		const h = 64, g = prepare(map, map.clientWidth, h), w = lanes.clientWidth, W = w - gutter; // as wide as the lanes, beside which there may be a scroll bar
		if (W <= 0) return;
		mapBitmap(W, h);
		g.drawImage(bitmap, gutter, 0, W, h);
		g.fillStyle = colours.soft;
		g.fillText(gutter < 100 ? "All" : "All threads", 10, h / 2 - 7);
		g.fillText((gutter < 100 ? "" : "at most ") + (most >= 10 ? Math.round(most) : +digits(most)), 10, h / 2 + 9);
		const a = gutter + W * from / run, b = gutter + W * to / run;
		g.fillStyle = colours.card; g.globalAlpha = .72;
		g.fillRect(gutter, 0, a - gutter, h); g.fillRect(b, 0, w - b, h);
		g.globalAlpha = 1;
		g.strokeStyle = colours.ink; g.lineWidth = 1.5;
		g.strokeRect(a + .75, .75, Math.max(2, b - a - 1.5), h - 1.5);
		g.fillStyle = colours.line; g.fillRect(0, h - 1, w, 1);
	}

	function axis(g, w, h) {
		const W = w - gutter, want = Math.max(4, Math.floor(W / 105)), len = to - from;
		let step = Math.pow(10, Math.floor(Math.log10(len / want)));
		for (const k of [1, 2, 5, 10]) if (len / (step * k) <= want) { step *= k; break; }
		g.textAlign = "center";
		for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
			const x = gutter + W * (v - from) / len;
			g.fillStyle = colours.line2; g.fillRect(x, axisH - 4, 1, h);
			g.fillStyle = colours.soft;
			if (x > gutter + 20 && x < w - 24) g.fillText(tick(v, step), x, axisH / 2 - 1);
		}
		g.textAlign = "left";
		g.fillStyle = colours.line; g.fillRect(0, axisH - 1, w, 1);
	}
	// tick is a time of the axis, with as many digits as its steps have.
	function tick(v, step) {
		const [unit, k] = to >= 2e9 ? ["s", 1e9] : to >= 2e6 ? ["ms", 1e6] : to >= 2e3 ? ["µs", 1e3] : ["ns", 1];
		return (v / k).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / k) - 1e-9)))) + " " + unit;
	}

	// Lanes are painted pixel by pixel: a picture of a million calls takes no longer than one of ten.
	let image = null, px = null, inks = [], dim = [];
	function drawLanes() {
		const w = lanes.clientWidth, h = pin.clientHeight, g = prepare(lanes, w, h), W = w - gutter, skip = scroll.scrollTop, k = lanes.width / w, pw = Math.floor(W * k), ph = Math.floor((h - axisH) * k);
		if (pw <= 0 || ph <= 0) return;
		if (!image || image.width !== pw || image.height !== ph) { image = g.createImageData(pw, ph); px = new Uint32Array(image.data.buffer); } else px.fill(0);
		inks = groupNames.map(n => ink32(colours[n], 255)); dim = groupNames.map(n => ink32(colours[n], 46));
		let drawn = 0, exact = 0;
		const first = Math.max(0, Math.floor(skip / (rowH + rowGap))), last = Math.min(rows.length, first + Math.ceil(h / (rowH + rowGap)) + 1), names = [];
		for (let r = first; r < last; r++) {
			const l = rows[r], top = rowGap + r * (rowH + rowGap) - skip, y0 = Math.round(top * k), y1 = Math.round((top + rowH) * k);
			const i0 = firstAfter(l, from);
			let i1 = i0, room = 3 * pw;
			while (i1 < l.begin.length && l.begin[i1] < to && room-- > 0) i1++;
			const whole = l.slices === l.all, few = room > 0 && (to - from) / W < run / t.bins, calls = nameOn || few && (l.slices > 0 || whole);
			drawn += calls && whole && few ? life(l, y0, y1, pw, ph) : shares(l, y0, y1, pw, ph);
			if (calls) { const n = slices(l, i0, y0, y1, pw, ph, k, r, names); drawn += n; exact += n; }
		}
		g.putImageData(image, Math.round(gutter * k), Math.round(axisH * k));
		g.globalCompositeOperation = "destination-over";
		axis(g, w, h);
		g.globalCompositeOperation = "source-over";
		g.save();
		g.beginPath(); g.rect(0, axisH, w, h - axisH); g.clip();
		g.font = "11px system-ui, sans-serif";
		for (const [r, q, x0, x1, name] of names) {
			g.fillStyle = inkOn(colours[groupNames[q]]);
			g.fillText(fit(g, name, Math.floor((x1 - x0 - 10) / 8) * 8), gutter + x0 + 5, axisH + rowGap + r * (rowH + rowGap) - skip + rowH / 2 + .5);
		}
		g.font = "12px system-ui, sans-serif";
		for (let r = first; r < last; r++) {
			const l = rows[r], y = axisH + rowGap + r * (rowH + rowGap) - skip;
			if (picked && picked.l === l) {
				const x = Math.max(gutter, gutter + W * (l.begin[picked.i] - from) / (to - from)), x1 = Math.min(w, gutter + W * (l.begin[picked.i] + l.took[picked.i] - from) / (to - from));
				if (x1 >= gutter && x <= w) { g.strokeStyle = colours.ink; g.lineWidth = 2; g.strokeRect(x - 1, y - 1, Math.max(3, x1 - x) + 2, rowH + 2); }
			}
			if (l.unfinished) { // it was still there, and nobody knows what it did
				const x = Math.max(0, (l.start_ns + l.duration_ns - from) / (to - from) * W);
				if (x < W) { g.strokeStyle = colours.wait; g.lineWidth = 1; g.setLineDash([2, 4]); g.beginPath(); g.moveTo(gutter + x, Math.round(y + rowH / 2) + .5); g.lineTo(w, Math.round(y + rowH / 2) + .5); g.stroke(); g.setLineDash([]); }
			}
			const here = document.activeElement === lanes && r === lane;
			g.fillStyle = here ? colours.hover : colours.card; g.fillRect(0, y - 1, gutter - 4, rowH + 2);
			if (here) { g.fillStyle = colours.accent; g.fillRect(0, y - 1, 3, rowH + 2); }
			g.fillStyle = colours.ink;
			g.fillText(fit(g, l.name, gutter - 18), 10, y + rowH / 2 + .5);
		}
		if (!rows.length) { g.fillStyle = colours.soft; g.fillText("No thread has a call like that.", gutter, axisH + 12); }
		g.restore();
		slot.dataset.drawn = drawn; slot.dataset.exact = exact;
	}
	// ink32 is a colour #rrggbb as a pixel of an image.
	function ink32(c, alpha) {
		const b = new Uint8Array([parseInt(c.slice(1, 3), 16), parseInt(c.slice(3, 5), 16), parseInt(c.slice(5, 7), 16), alpha]);
		return new Uint32Array(b.buffer)[0];
	}

	const fitted = new Map();
	function fit(g, s, w) {
		const key = s + " " + w;
		let v = fitted.get(key);
		if (v == null) {
			v = s;
			while (v.length > 1 && g.measureText(v + (v === s ? "" : "…")).width > w) v = v.slice(0, -1);
			if (v !== s) v += "…";
			fitted.set(key, v);
		}
		return v;
	}

	// life paints a thread as being between calls for as long as it lives.
	function life(l, y0, y1, pw, ph) {
		if (hidden.has("compute")) return 0;
		const k = pw / (to - from), x0 = Math.max(0, Math.floor((l.start_ns - from) * k)), x1 = Math.min(pw, Math.ceil((l.start_ns + l.duration_ns - from) * k));
		if (x1 <= x0) return 0;
		for (let y = Math.max(0, y0); y < Math.min(ph, y1); y++) px.fill(inks[0], y * pw + x0, y * pw + x1);
		return 1;
	}

	// shares paints columns of shares, of the level whose bins are about a pixel wide.
	function shares(l, y0, y1, pw, ph) {
		const per = (to - from) / pw * t.bins / run, level = Math.max(0, Math.min(l.levels.length - 1, Math.floor(Math.log2(Math.max(1, per)))));
		const d = l.levels[level], n = t.bins >> level, use = nameOn ? dim : inks, high = y1 - y0;
		let drawn = 0;
		for (let x = 0; x < pw; x++) {
			const bin = Math.min(n - 1, Math.floor((from + (to - from) * (x + .5) / pw) / run * n));
			let sum = 0, y = y1;
			for (let q = 0; q < G; q++) {
				const v = d[q * n + bin];
				if (!v || hidden.has(groupNames[q])) continue;
				sum += v;
				drawn++;
				const end = Math.max(y0, y1 - Math.round(high * sum / 255));
				while (y > end) if (--y >= 0 && y < ph) px[y * pw + x] = use[q];
			}
		}
		return drawn;
	}

	// doing is what a thread did in the stretch that is shown, in words.
	function doing(l) {
		const per = (to - from) / 64 * t.bins / run, level = Math.max(0, Math.min(l.levels.length - 1, Math.floor(Math.log2(Math.max(1, per)))));
		const d = l.levels[level], n = t.bins >> level, a = Math.max(0, Math.floor(from / run * n)), b = Math.min(n, Math.max(a + 1, Math.ceil(to / run * n)));
		const parts = groupNames.map((g, q) => { let sum = 0; for (let i = a; i < b; i++) sum += d[q * n + i]; return [g, sum / 255 / (b - a)]; });
		return parts.filter(p => p[1] >= .005).sort((x, y) => y[1] - x[1]).map(p => groupWords[p[0]] + " " + percent(p[1])).join(", ") || "nothing here";
	}

	// slices paints calls, one over the other where they share a pixel; wide ones are told apart by a gap, and named.
	function slices(l, i, y0, y1, pw, ph, k, row, names) {
		const kx = pw / (to - from), line = new Uint32Array(pw);
		let drawn = 0, lastX = -1, lastQ = -1;
		for (; i < l.begin.length && l.begin[i] < to; i++) {
			if (!on(l, i)) continue;
			const q = t.groups_of[l.kind[i]], x0 = Math.max(0, Math.floor((l.begin[i] - from) * kx)), end = Math.max(x0 + 1, Math.round((l.begin[i] + l.took[i] - from) * kx)), x1 = Math.min(pw, end);
			if (x1 <= lastX && q === lastQ) continue;
			line.fill(inks[q], x0, x1 - x0 > 4 * k && end <= pw ? x1 - 1 : x1);
			if (x1 - x0 > 48 * k) names.push([row, q, x0 / k, x1 / k, t.names[l.kind[i]]]);
			lastX = x1; lastQ = q;
			drawn++;
		}
		for (let y = Math.max(0, y0); y < Math.min(ph, y1); y++) for (let x = 0, at = y * pw; x < pw; x++, at++) if (line[x]) px[at] = line[x];
		return drawn;
	}

	function drawCounts() {
		const kinds = [["events", "Events", v => digitsShort(v) + "/s"], ["resident_bytes", "Memory", size], ["bytes_in", "Read", v => size(v) + "/s"], ["bytes_out", "Written", v => size(v) + "/s"]]
			.filter(k => t.counts[k[0]] && t.counts[k[0]].some(v => v > 0));
		const hh = 30, h = kinds.length * hh, g = prepare(counts, counts.clientWidth, Math.max(1, h)), w = lanes.clientWidth, W = w - gutter, n = t.overview, tops = [];
		kinds.forEach(([key, name, show], r) => {
			const f = t.counts[key], y = (r + 1) * hh - 4, a = Math.max(0, Math.floor(from / run * n)), b = Math.min(n, Math.ceil(to / run * n));
			let top = 0;
			for (let i = a; i < b; i++) top = Math.max(top, f[i]);
			g.fillStyle = colours.line2; g.fillRect(0, r * hh, w, 1);
			g.fillStyle = colours.wait;
			if (top > 0) for (let x = 0; x < W; x++) {
				const v = (hh - 8) * f[Math.min(n - 1, Math.floor((from + (to - from) * (x + .5) / W) / run * n))] / top;
				if (v > 0) g.fillRect(gutter + x, y - v, 1, v);
			}
			g.fillStyle = colours.ink;
			g.fillText(fit(g, name, gutter - 14), 10, y - 16);
			g.fillStyle = colours.soft;
			g.fillText(fit(g, show(top), gutter - 14), 10, y - 3);
			tops.push(name + " at most " + show(top));
		});
		counts.setAttribute("aria-label", "Over time, in the stretch that is shown: " + tops.join(", "));
	}
	const digitsShort = v => v >= 1e6 ? digits(v / 1e6) + " M" : v >= 1e3 ? digits(v / 1e3) + " k" : digits(v);

	// The longest calls of what is shown: the same as a table, for who does not see the picture.
	let later = 0;
	const longest = table({caption: "The longest calls in the stretch that is shown", rows: [], step: 8, thing: "call", by: 2, captioned: true, columns: [
		{name: "Call", of: r => r.call, show: r => el("button", {type: "button", class: "go", onclick: () => { choose(r.l, r.i, true); lanes.focus({preventScroll: true}); pin.scrollIntoView({block: "nearest"}); }}, r.call)},
		{name: "Thread", of: r => r.l.name, show: r => r.l.name, cls: "name"},
		{name: "Took", n: true, of: r => r.took, show: r => dur(r.took)},
		{name: "At", n: true, of: r => r.at, show: r => at(r.at, to - from)},
		{name: "On", of: r => r.on, show: r => r.on, cls: "name"}]});
	inView.append(longest);
	function listSoon() { clearTimeout(later); later = setTimeout(list, 150); }
	function list() {
		const best = [], most = 40;
		let min = 0;
		for (const l of rows) for (let i = firstAfter(l, from); i < l.begin.length && l.begin[i] < to; i++) {
			if (l.took[i] <= min || !on(l, i)) continue;
			best.push({l, i, call: t.names[l.kind[i]], took: l.took[i], at: l.begin[i], on: t.labels[l.label[i]]});
			if (best.length >= 4 * most) { best.sort((a, b) => b.took - a.took); best.length = most; min = best[most - 1].took; }
		}
		best.sort((a, b) => b.took - a.took);
		best.length = Math.min(best.length, most);
		longest.refill(best);
		inView.hidden = !t.lanes.some(l => l.begin.length);
	}

	function choose(l, i, look) {
		picked = {l, i};
		const took = l.took[i], b = l.begin[i];
		if (look && (b + took < from || b > to || took < (to - from) / 400)) set(b - Math.max(took, 1000) * 4, b + Math.max(took, 1000) * 5);
		const r = rows.indexOf(l);
		if (r >= 0) { lane = r; show(r); }
		pick.hidden = false;
		said.textContent = [t.names[l.kind[i]], dur(took), t.labels[l.label[i]], l.name, "at " + at(b, took)].filter(x => x).join(", ");
		pick.replaceChildren(chip(groupNames[t.groups_of[l.kind[i]]]), el("strong", {}, t.names[l.kind[i]]), el("span", {}, dur(took)), el("span", {class: "mono"}, t.labels[l.label[i]]),
			el("span", {class: "none"}, l.name + " at " + at(b, took)), el("button", {type: "button", onclick: () => set(b - took * .2 - 50, b + took * 1.2 + 50)}, "Look closer"));
		draw();
	}
	function unpick() { picked = null; pick.hidden = true; said.textContent = ""; draw(); }
	function goTo(r) {
		lane = Math.max(0, Math.min(rows.length - 1, r));
		if (!rows.length) return;
		show(lane);
		said.textContent = rows[lane].name + ": " + doing(rows[lane]);
		draw();
	}
	function show(r) {
		const y = r * (rowH + rowGap), h = pin.clientHeight - axisH;
		if (y < scroll.scrollTop) scroll.scrollTop = y;
		else if (y + rowH + 2 * rowGap > scroll.scrollTop + h) scroll.scrollTop = y + rowH + 2 * rowGap - h;
	}

	// Pointer.
	function under(e) {
		const b = lanes.getBoundingClientRect(), x = e.clientX - b.left, y = e.clientY - b.top + scroll.scrollTop - axisH - rowGap;
		const r = Math.floor(y / (rowH + rowGap));
		if (x < gutter || e.clientY - b.top < axisH || r < 0 || r >= rows.length) return null;
		const l = rows[r], ns = x2t(x, b.width), slack = (to - from) / (b.width - gutter) * 2;
		let i = firstAfter(l, ns - slack), best = -1;
		for (; i < l.begin.length && l.begin[i] <= ns + slack; i++) if (on(l, i) && (best < 0 || l.took[i] > l.took[best])) best = i;
		return {l, r, ns, i: best};
	}
	function hint(e) {
		const u = under(e);
		if (!u) { tip.hidden = true; return; }
		const {l, i, ns} = u;
		if (i >= 0 && (l.took[i] > (to - from) / 400 || nameOn))
			tip.replaceChildren(el("b", {}, t.names[l.kind[i]]), " " + dur(l.took[i]) + (l.label[i] ? " · " + t.labels[l.label[i]] : "") + " · " + l.name + " at " + at(l.begin[i], to - from));
		else {
			const per = (to - from) / Math.max(1, lanes.clientWidth - gutter) * t.bins / run, level = Math.max(0, Math.min(l.levels.length - 1, Math.floor(Math.log2(Math.max(1, per)))));
			const n = t.bins >> level, b = Math.min(n - 1, Math.floor(ns / run * n)), d = l.levels[level];
			const parts = groupNames.map((g, q) => [g, d[q * n + b]]).filter(p => p[1] > 2).sort((a, c) => c[1] - a[1]);
			if (!parts.length && !(l.unfinished && ns > l.start_ns + l.duration_ns)) { tip.hidden = true; return; }
			tip.replaceChildren(el("b", {}, l.name), " at " + at(ns, to - from) + " · " + (parts.map(p => groupWords[p[0]] + " " + percent(p[1] / 255)).join(", ") || "what it did last is not known"));
		}
		tip.hidden = false;
		const b = tip.getBoundingClientRect();
		tip.style.left = Math.max(4, Math.min(innerWidth - b.width - 4, e.clientX + 14)) + "px";
		tip.style.top = (e.clientY + 18 + b.height > innerHeight ? e.clientY - b.height - 10 : e.clientY + 18) + "px";
	}
	const fingers = new Map();
	let drag = null;
	lanes.addEventListener("pointerdown", e => {
		if (e.button) return;
		fingers.set(e.pointerId, e);
		lanes.setPointerCapture(e.pointerId);
		drag = {x: e.clientX, from, to, moved: false};
		if (fingers.size === 2) drag.gap = gap();
		lanes.classList.add("drag");
	});
	const gap = () => { const [a, b] = [...fingers.values()]; return Math.abs(a.clientX - b.clientX) + 1; };
	lanes.addEventListener("pointermove", e => {
		if (!drag) { hint(e); return; }
		fingers.set(e.pointerId, e);
		const W = lanes.clientWidth - gutter;
		if (fingers.size === 2) {
			const k = drag.gap / gap(), c = (drag.from + drag.to) / 2;
			drag.moved = true;
			set(c - (c - drag.from) * k, c + (drag.to - c) * k);
			return;
		}
		const dx = e.clientX - drag.x;
		if (Math.abs(dx) > 3) drag.moved = true;
		if (drag.moved) { tip.hidden = true; const s = dx / W * (drag.to - drag.from); set(drag.from - s, drag.to - s); }
	});
	const lift = e => {
		fingers.delete(e.pointerId);
		if (drag && !drag.moved && e.type === "pointerup") { const u = under(e); if (u) { lane = u.r; u.i >= 0 ? choose(u.l, u.i) : draw(); } }
		drag = null;
		lanes.classList.remove("drag");
	};
	lanes.addEventListener("pointerup", lift);
	lanes.addEventListener("pointercancel", lift);
	lanes.addEventListener("pointerleave", () => { tip.hidden = true; });
	lanes.addEventListener("dblclick", e => zoom(.25, x2t(e.clientX - lanes.getBoundingClientRect().left, lanes.clientWidth)));
	lanes.addEventListener("wheel", e => {
		if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 120))), x2t(e.clientX - lanes.getBoundingClientRect().left, lanes.clientWidth)); }
		else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); move((e.deltaX || e.deltaY) / 800); }
	}, {passive: false});
	scroll.addEventListener("scroll", draw);

	// A stretch of the whole run is chosen in the overview.
	map.addEventListener("pointerdown", e => {
		map.setPointerCapture(e.pointerId);
		const b = map.getBoundingClientRect(), W = lanes.clientWidth - gutter, ns = x => Math.max(0, Math.min(run, (x - b.left - gutter) / W * run)), start = ns(e.clientX), inside = start > from && start < to && to - from < run;
		const was = [from, to];
		const go = m => inside ? set(was[0] + ns(m.clientX) - start, was[1] + ns(m.clientX) - start) : Math.abs(m.clientX - e.clientX) > 3 ? set(Math.min(start, ns(m.clientX)), Math.max(start, ns(m.clientX))) : 0;
		const end = m => { map.removeEventListener("pointermove", go); if (!inside && Math.abs(m.clientX - e.clientX) <= 3) { const half = (to - from) / 2; set(start - half, start + half); } };
		map.addEventListener("pointermove", go);
		map.addEventListener("pointerup", end, {once: true});
	});

	function keys(e) {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		const l = rows[lane];
		const next = d => {
			if (!l || !l.begin.length) return;
			let i = picked && picked.l === l ? picked.i + d : d > 0 ? firstAfter(l, from) : firstAfter(l, to) - 1;
			while (i >= 0 && i < l.begin.length && !on(l, i)) i += d;
			if (i >= 0 && i < l.begin.length) {
				if (l.begin[i] < from || l.begin[i] + l.took[i] > to) { const c = l.begin[i] + l.took[i] / 2, half = Math.max((to - from) / 2, l.took[i]); set(c - half, c + half); }
				choose(l, i);
			}
		};
		const acts = {
			ArrowLeft: () => move(-.2), ArrowRight: () => move(.2), "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), 0: () => set(0, run), Home: () => set(0, to - from), End: () => set(run - (to - from), run),
			ArrowUp: () => goTo(lane - 1), ArrowDown: () => goTo(lane + 1), n: () => next(1), p: () => next(-1),
			Escape: () => picked ? unpick() : set(0, run),
		};
		// The overview is a slider: there the keys of sliders move.
		const act = e.currentTarget === map ? {...acts, ArrowUp: acts.ArrowRight, ArrowDown: acts.ArrowLeft, PageUp: () => move(1), PageDown: () => move(-1), n: null, p: null}[e.key] : acts[e.key];
		if (!act) return;
		e.preventDefault();
		act();
	}
	lanes.addEventListener("keydown", keys);
	map.addEventListener("keydown", keys);
	addEventListener("keydown", e => { if (e.key === "Escape") tip.hidden = true; });
	lanes.addEventListener("focus", () => { if (rows.length && !picked) said.textContent = rows[lane].name + ": " + doing(rows[lane]); draw(); });
	lanes.addEventListener("blur", draw);
	new ResizeObserver(layout).observe(slot);
	layout();
	list();
	return {draw: now, look: (a, b) => { set(a, b); lanes.focus({preventScroll: true}); slot.scrollIntoView(); }};
}

// What all parts use: elements, numbers in words, colours, the data of the page. Text of a trace goes into the page as
// text and attributes alone, never as markup.
const $ = id => document.getElementById(id);

// el makes an element: el("td", {class: "n"}, "text", child …).
function el(tag, attrs, ...kids) {
	const e = document.createElement(tag);
	for (const k in attrs || {}) {
		const v = attrs[k];
		if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
		else if (v === true) e.setAttribute(k, "");
		else if (v !== false && v != null) e.setAttribute(k, v);
	}
	e.append(...kids.flat().filter(x => x != null));
	return e;
}

function svg(tag, attrs, ...kids) {
	const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const k in attrs || {}) e.setAttribute(k, attrs[k]);
	e.append(...kids);
	return e;
}

const groupWords = {
	compute: "Between calls", disk: "Disk", network: "Network", pipe: "Pipes, terminals", lock: "Waiting for locks", wait: "Waiting for events", sleep: "Sleeping", other: "Other calls",
};
const groupNames = Object.keys(groupWords);

// dur is a time with its unit, in three digits.
function dur(ns) {
	const a = Math.abs(ns);
	for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["µs", 1e3]])
		if (a >= size) return digits(ns / size) + " " + unit;
	return Math.round(ns) + " ns";
}

function digits(x) {
	const a = Math.abs(x);
	return a >= 1000 ? grouped(Math.round(x)) : a >= 100 ? x.toFixed(0) : a >= 10 ? x.toFixed(1) : x.toFixed(2);
}

// at is a place in the run: as many digits as tell stretches of `of` ns apart.
function at(ns, of) {
	const s = ns / 1e9;
	return s.toFixed(Math.max(3, Math.min(9, Math.ceil(-Math.log10(of / 1e9)) + 3))) + " s";
}

function size(n) {
	for (const [unit, k] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
		if (n >= k) return digits(n / k) + " " + unit;
	return Math.round(n) + " B";
}

const grouped = n => String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
const plural = (n, one) => grouped(n) + " " + one + (n === 1 ? "" : /(s|ch|x)$/.test(one) ? "es" : "s");
const percent = x => !isFinite(x) ? "–" : x >= .0995 ? Math.round(100 * x) + "%" : x > 0 && x < .001 ? "<0.1%" : (100 * x).toFixed(1) + "%";

let colours = {};
function readColours() {
	const s = getComputedStyle(document.documentElement);
	for (const n of groupNames.concat("ink", "soft", "line", "line2", "card", "accent", "hover", "bg")) colours[n] = s.getPropertyValue("--" + n).trim();
}

// inkOn is black or white, whichever is easier to read on a colour #rrggbb.
function inkOn(c) {
	const v = k => Math.pow(parseInt(c.slice(k, k + 2), 16) / 255, 2.2);
	return .21 * v(1) + .72 * v(3) + .07 * v(5) > .18 ? "#000" : "#fff";
}

const chip = g => { const i = el("span", {class: "chip", "aria-hidden": "true"}); i.style.background = "var(--" + g + ")"; return i; };

// bar is shares of a whole, by group; what it says is in its label. words are what groups are called there.
function bar(parts, whole, cls, words) {
	const total = parts.reduce((a, p) => a + p[1], 0);
	words = words || groupWords;
	const b = el("div", {class: "bar " + (cls || ""), role: "img", "aria-label": parts.filter(p => p[1] > 0).map(p => words[p[0]] + " " + percent(p[1] / total)).join(", ") || "nothing"});
	for (const [g, v] of parts) {
		if (v <= 0 || v / whole < .0005) continue;
		const i = el("i", {title: words[g] + " " + dur(v) + ", " + percent(v / total)});
		i.style.width = 100 * v / whole + "%";
		i.style.background = "var(--" + g + ")";
		b.append(i);
	}
	return b;
}

// unpack reads a block of the page: base64 of gzip.
async function unpack(id) {
	const text = $(id).textContent;
	const raw = atob(text), bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
	$(id).textContent = "";
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

// Light or dark: as the system has it, until somebody chooses. changed draws what has colours of its own, at once.
function themes(changed) {
	const root = document.documentElement, button = $("theme"), system = matchMedia("(prefers-color-scheme: dark)");
	const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
	const show = () => {
		button.textContent = dark() ? "Light" : "Dark";
		button.setAttribute("aria-label", dark() ? "Switch to light colours" : "Switch to dark colours");
		readColours();
		changed();
	};
	button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; show(); });
	system.addEventListener("change", show);
	// Paper is light, whatever the screen is.
	let was;
	addEventListener("beforeprint", () => { was = root.dataset.theme; root.dataset.theme = "light"; show(); });
	addEventListener("afterprint", () => { if (was) root.dataset.theme = was; else delete root.dataset.theme; show(); });
	show();
}

// The link of the section that is read is marked.
function sections() {
	const links = [...document.querySelectorAll(".top nav a")];
	const seen = new Map();
	const watch = new IntersectionObserver(list => {
		for (const e of list) seen.set(e.target.id, e.isIntersecting);
		const first = links.find(a => seen.get(a.hash.slice(1)));
		for (const a of links) a === first ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current");
	}, {rootMargin: "-60px 0px -50% 0px"});
	for (const a of links) watch.observe($(a.hash.slice(1)));
}

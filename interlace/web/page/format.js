// Numbers for people, and elements without markup in strings: text from a topology is never parsed as HTML.

export function quantity(n) {
  if (n === null || n === undefined || !isFinite(n)) return "–";
  for (const [unit, scale] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (Math.abs(n) >= scale * 0.9995) return `${Number((n / scale).toPrecision(3))} ${unit}`;
  return n >= 10 || Number.isInteger(n) ? String(Math.round(n)) : n.toFixed(1);
}

export function bytes(n) {
  if (n === null || n === undefined || !isFinite(n)) return "–";
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024 || unit === "GiB") return unit === "B" ? `${Math.round(n)} B` : `${n.toFixed(1)} ${unit}`;
    n /= 1024;
  }
}

export function seconds(s) {
  if (s === null || s === undefined || !isFinite(s)) return "–";
  if (s === 0) return "0 s";
  if (s < 0.995) return `${Number((s * 1000).toPrecision(2))} ms`;
  if (s < 120) return `${Number(s.toPrecision(3))} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${Math.round(s / 3600)} h` : `${Math.round(s / 86400)} days`;
}

export const percent = (share) => `${Math.round((share || 0) * 100)} %`;
export const clock = (at) => new Date(at * 1000).toLocaleTimeString();
export const behind = (source) => source.behind === null ? "–"
  : source.unit === "s" ? seconds(source.behind) : `${quantity(source.behind)} ${source.unit}`.trim();

export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function table(names, rows, options = {}) {
  const right = new Set(options.right || []);
  const cell = (kind, at, content) => el(kind, { class: right.has(at) ? "right" : null, scope: kind === "th" ? "col" : null }, content);
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label || names[0] },
    el("table", {}, el("thead", {}, el("tr", {}, names.map((name, at) => cell("th", at, name)))),
      el("tbody", {}, rows.map((row) => el("tr", { class: row.hot ? "hot" : null },
        (row.cells || row).map((content, at) => cell("td", at, content)))))));
}

export function bar(load) {
  const line = el("div", { class: "bar", role: "img", "aria-label": `busy ${percent(load.busy)}, blocked ${percent(load.blocked)}` });
  for (const kind of ["busy", "blocked"]) {
    const part = el("i", { class: kind });
    part.style.width = `${(load[kind] || 0) * 100}%`;
    line.append(part);
  }
  return line;
}

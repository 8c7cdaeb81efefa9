// Time series as SVG: lines over the last minutes, the value under the pointer, and a summary for those who cannot see it.

import { el, svg, clock } from "./format.js";

const WIDTH = 420, HEIGHT = 130, LEFT = 62, RIGHT = 6, TOP = 6, BOTTOM = 18;
const STALE_SECONDS = 5;

export function chart(title, series, points, format, options = {}) {
  const now = el("span", { class: "now" });
  const figure = el("figure", { class: "card" }, el("figcaption", {}, el("b", {}, title), now));
  const shown = series.filter(({ key }) => points.some((point) => typeof point[key] === "number"));
  if (!points.length || !shown.length) {
    figure.append(el("div", { class: "none" }, options.none || "Nothing to show yet."));
    return figure;
  }
  const last = points[points.length - 1].at, first = Math.min(points[0].at, last - 60);
  let top = Math.max(...shown.map(({ key }) => Math.max(...points.map((point) => point[key] ?? 0))), options.least || 0);
  top = nice(top || 1, options.base || 10);
  const x = (at) => LEFT + (at - first) / (last - first) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
  const value = ({ key, label }, point) => `${label ? `${label} ` : ""}${format(point[key])}`;
  const latest = newest(points, shown);
  now.textContent = shown.length === 1 ? format(latest[0]) : "";
  const summary = shown.map((each, at) => `${each.label || title}: ${format(latest[at])}`).join(", ");
  const frame = svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}. Now ${summary}.` });
  for (const share of [0, 0.5, 1]) {
    frame.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(top * share), y2: y(top * share) }),
      svg("text", { x: LEFT - 6, y: y(top * share) + 4, "text-anchor": "end" }, format(top * share)));
  }
  frame.append(svg("text", { x: LEFT, y: HEIGHT - 4 }, clock(first)),
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, clock(last)));
  shown.forEach(({ key }, at) => {
    for (const stretch of stretches(points, key))
      frame.append(svg("path", { class: `line k${at % 6 + 1}`, d: stretch.map((point, n) => `${n ? "L" : "M"}${x(point.at).toFixed(1)},${y(point[key]).toFixed(1)}`).join("") }));
  });
  const cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  frame.append(cursor);
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    const at = first + ((event.clientX - box.left) / box.width * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT) * (last - first);
    const near = points.reduce((best, point) => Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best);
    cursor.setAttribute("x1", x(near.at));
    cursor.setAttribute("x2", x(near.at));
    cursor.setAttribute("visibility", "visible");
    now.textContent = `${clock(near.at)}  ${shown.map((each) => value(each, near)).join(", ")}`;
  });
  frame.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    now.textContent = shown.length === 1 ? format(latest[0]) : "";
  });
  figure.append(frame);
  if (shown.length > 1) {
    figure.append(el("div", { class: "legend" }, shown.map((each, at) =>
      el("span", {}, el("i", { class: `k${at % 6 + 1}` }), `${each.label} ${format(latest[at])}`))));
  }
  return figure;
}

function newest(points, series) {
  const last = points[points.length - 1].at;
  return series.map(({ key }) => {
    for (let at = points.length - 1; at >= 0 && last - points[at].at <= STALE_SECONDS; at--)
      if (typeof points[at][key] === "number") return points[at][key];
    return null;
  });
}

function stretches(points, key) {
  const found = [];
  let current = [];
  for (const point of points) {
    if (typeof point[key] === "number") current.push(point);
    else if (current.length) { found.push(current); current = []; }
  }
  if (current.length) found.push(current);
  return found;
}

function nice(value, base) {
  const scale = base ** Math.floor(Math.log(value) / Math.log(base) + 1e-9);
  return (base === 10 ? [1, 2, 4, 5, 10] : [1, 2, 4, 10, 20, 40, 100, 200, 400, 1024]).find((step) => step * scale >= value * 0.999) * scale;
}

// The graph of components: coloured by busy, blocked and idle; edges as wide as their rate.

import { el, svg, quantity, bytes, seconds, percent } from "./format.js";
import { explain } from "./tip.js";

const MOST_ENLARGED = 1.2;
const FULL_EDGE_BYTES = 4 * 1024 * 1024;

export function drawGraph(graph, report, choose) {
  const byNode = graph.groups.length > 0;
  const components = new Map((report.components || []).map((load) => [load.component, load]));
  const loadOf = (box) => byNode ? here(components.get(box.name), box.node) : components.get(box.name);
  const flows = new Map(((byNode ? report.placed_edges : report.edges) || []).map((edge) => [`${edge.from} ${edge.to}`, edge]));
  const hops = new Set((report.critical_path?.hops || []).map((hop) => `${hop.from} ${hop.to}`));
  const names = new Map(graph.boxes.map((box) => [box.id, box.name]));
  const culprit = report.verdict ? report.verdict.component : null;
  const image = svg("svg", { class: "graph", viewBox: `0 0 ${graph.width} ${graph.height}`, role: "group",
    "aria-label": `The graph of ${report.name}: ${graph.boxes.length} components` });
  image.style.maxWidth = `${graph.width * MOST_ENLARGED}px`;
  const labels = [];
  for (const group of graph.groups) image.append(
    svg("rect", { class: "node", x: group.x, y: group.y, width: group.width, height: group.height, rx: 12 }),
    svg("text", { class: "node-name", x: group.x + 14, y: group.y + 23, "font-weight": "600" }, group.name));
  for (const edge of graph.edges)
    image.append(...drawEdge(edge, graph, flows.get(`${edge.from} ${edge.to}`), hops.has(`${names.get(edge.from)} ${names.get(edge.to)}`), labels));
  for (const box of graph.boxes) image.append(drawBox(box, loadOf(box), box.name === culprit, choose));
  image.append(...labels);
  return image;
}

// What the tasks of a component do on one node.
function here(load, node) {
  const parts = (load?.parts || []).filter((part) => (part.node ?? "–") === node);
  if (!parts.length) return undefined;
  const sum = (key) => parts.reduce((total, part) => total + part[key], 0);
  const sums = ["rows_in", "rows_out", "rows_in_per_second", "rows_out_per_second", "waiting_bytes", "state_bytes"];
  const means = ["busy", "blocked", "idle"];
  return { ...load, ...Object.fromEntries(sums.map((key) => [key, sum(key)])), ...Object.fromEntries(means.map((key) => [key, sum(key) / parts.length])),
    busiest: Math.max(...parts.map((part) => part.busiest)), tasks: parts.length };
}

export function legendOfPath(report) {
  return report.critical_path?.summary ? el("p", { class: "trace" }, el("i", { class: "path" }), report.critical_path.summary) : null;
}

function drawEdge(edge, graph, flow, isOnPath, labels) {
  const boxes = new Map(graph.boxes.map((box) => [box.id, box]));
  const height = boxes.get(edge.from).height;
  const path = way(edge.points, height);
  const rate = flow ? flow.rows_per_second : 0;
  const full = flow && flow.waiting_bytes >= FULL_EDGE_BYTES;
  const line = svg("path", { class: `edge${full ? " full" : ""}${isOnPath ? " path" : ""}`, d: path, "stroke-width": (1.2 + 1.35 * Math.log10(1 + rate)).toFixed(2) });
  const hit = svg("path", { class: "hit", d: path });
  explain(hit, () => edgeText(edge, flow));
  if (rate >= 0.5) {
    const [x, y] = edge.points.length > 2 ? [edge.points[1][0], edge.points[1][1] + height / 2]
      : [(edge.points[0][0] + edge.points[1][0]) / 2, (edge.points[0][1] + height + edge.points[1][1]) / 2];
    labels.push(svg("text", { class: "edge-label", x: x + 5 + Math.log10(1 + rate), y: y + 4, "aria-hidden": "true" }, `${quantity(rate)}/s`));
  }
  return [line, hit];
}

function edgeText(edge, flow) {
  const lines = [`${edge.from} → ${edge.to}`, ...edge.streams];
  if (flow) lines.push(`${quantity(flow.rows_per_second)} rows/s, ${bytes(flow.bytes_per_second)}/s`,
    `${quantity(flow.rows)} rows, ${bytes(flow.bytes)} so far`, `${bytes(flow.waiting_bytes)} wait at the consumer`);
  return lines.join("\n");
}

function way(points, height) {
  let [x, y] = [points[0][0], points[0][1] + height];
  let path = `M${x},${y}`;
  points.slice(1).forEach(([end, top], at) => {
    const middle = (y + top) / 2;
    path += ` C${x},${middle} ${end},${middle} ${end},${top}`;
    [x, y] = [end, top];
    if (at < points.length - 2) { y += height; path += ` L${x},${y}`; }
  });
  return path;
}

function drawBox(box, load, isCulprit, choose) {
  const name = box.name + (box.parallelism > 1 ? ` ×${box.parallelism}` : "");
  const group = svg("g", { class: `box${isCulprit ? " culprit" : ""}`, tabindex: "0", role: "button", "aria-label": boxText(box, load).replaceAll("\n", ", "),
    transform: `translate(${box.x},${box.y})`, "data-component": box.name, "data-node": box.node });
  group.append(svg("rect", { class: "body", width: box.width, height: box.height, rx: 8 }));
  if (load) {
    const kind = load.blocked > load.busiest ? "blocked" : "busy";
    group.append(svg("rect", { class: kind, "fill-opacity": (0.4 * Math.max(load.blocked, load.busiest)).toFixed(2), width: box.width, height: box.height, rx: 8 }));
  }
  group.append(
    svg("text", { x: 11, y: 18, "font-weight": "600" }, name),
    svg("text", { class: "sub", x: 11, y: 33 }, load ? `${percent(load.busiest)} busy${load.blocked >= 0.05 ? `, ${percent(load.blocked)} blocked` : ""}` : box.class));
  if (load) {
    const width = box.width - 22;
    group.append(svg("rect", { class: "idle", x: 11, y: 37, width, height: 4, rx: 2 }),
      svg("rect", { class: "busy", x: 11, y: 37, width: width * load.busy, height: 4, rx: 2 }),
      svg("rect", { class: "blocked", x: 11 + width * load.busy, y: 37, width: width * load.blocked, height: 4, rx: 2 }));
  }
  explain(group, () => boxText(box, load));
  group.addEventListener("click", () => choose(box.name));
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(box.name); }
  });
  return group;
}

function boxText(box, load) {
  const lines = [`${box.name} (${box.class})`];
  if (box.note) lines.push(box.note);
  if (load) {
    const age = load.age_seconds;
    lines.push(`${quantity(load.rows_in_per_second)} rows/s in, ${quantity(load.rows_out_per_second)} rows/s out`,
      `${percent(load.busy)} busy, ${percent(load.blocked)} blocked by back-pressure, ${percent(load.idle)} idle`,
      `${quantity(load.rows_in)} rows in, ${quantity(load.rows_out)} out so far`);
    if (age.p50 !== null) lines.push(`age of rows here: p50 ${seconds(age.p50)}, p95 ${seconds(age.p95)}, p99 ${seconds(age.p99)}`);
    if (load.waiting_bytes) lines.push(`${bytes(load.waiting_bytes)} wait for it`);
    if (load.state_bytes) lines.push(`${bytes(load.state_bytes)} of state`);
  }
  return lines.join("\n");
}

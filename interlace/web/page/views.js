// The views below the answers: each is made anew from the last report and the numbers of the last minutes.

import { el, table, bar, quantity, bytes, seconds, percent, clock, behind } from "./format.js";
import { chart } from "./charts.js";
import { drawGraph, legendOfPath } from "./graph.js";

export const VIEWS = [
  { id: "overview", title: "Overview", draw: overview },
  { id: "charts", title: "Over time", draw: charts },
  { id: "sources", title: "Sources and late rows", draw: sources },
  { id: "processes", title: "Processes", draw: processes },
  { id: "query", title: "Query", draw: query },
  { id: "events", title: "Events and log", draw: events },
];

const LEGEND = [["busy", "busy"], ["blocked", "blocked by back-pressure"], ["idle", "idle"]];

function overview(page) {
  const { report, graph, points } = page;
  if (!report.components) return [errors(report)];
  const ways = [["component", "By component"], ["node", "By node"]].map(([by, text]) =>
    el("button", { type: "button", "data-by": by, "aria-pressed": String(page.by === by), onclick: () => page.drawBy(by) }, text));
  const drawing = el("section", { class: "card", "aria-label": "Graph" }, el("div", { class: "row" }, el("h2", {}, "Graph"),
    el("div", { class: "switch", role: "group", "aria-label": "Draw the graph" }, ways)),
    el("div", { class: "legend" }, LEGEND.map(([kind, text]) => el("span", {}, el("i", { class: kind }), text))));
  if (graph) drawing.append(drawGraph(graph, report, page.choose));
  const path = legendOfPath(report);
  if (path) drawing.append(path);
  const side = el("div", { class: "stack" }, ...rates(points).slice(0, 2), component(page));
  return [el("div", { class: "columns" }, drawing, side)];
}

function component(page) {
  const { report } = page;
  const load = report.components.find((each) => each.component === page.chosen)
    || report.components.find((each) => each.component === report.verdict.component)
    || report.components.reduce((one, other) => other.busiest > one.busiest ? other : one, report.components[0]);
  if (!load) return null;
  const own = Object.entries(load.own || {}).filter(([, value]) => value);
  return el("section", { class: "card", id: "chosen", "aria-live": "off" }, el("h2", {}, `${load.component}`),
    load.note ? el("p", { class: "fresh" }, load.note) : null,
    table(["task", "busy", "blocked", "rows in/s", "rows out/s", "waiting"], load.parts.map((part) =>
      [String(part.task), percent(part.busy), percent(part.blocked), quantity(part.rows_in_per_second), quantity(part.rows_out_per_second), bytes(part.waiting_bytes)]),
      { right: [1, 2, 3, 4, 5], label: `Tasks of ${load.component}` }),
    own.length ? el("p", { class: "legend" }, own.map(([name, value]) => el("span", {}, `${name.replaceAll("_", " ")}: ${name.endsWith("bytes") ? bytes(value) : quantity(value)}`))) : null);
}

function rates(points) {
  return [
    chart("Rows a second", [{ key: "rows_in_rate", label: "in" }, { key: "rows_out_rate", label: "out" }], points, quantity),
    chart("Latency", [{ key: "latency_p50", label: "p50" }, { key: "latency_p95", label: "p95" }, { key: "latency_p99", label: "p99" }], points, seconds,
      { none: "No results have come in the last minutes." }),
  ];
}

function charts({ points, report }) {
  const keys = (prefix) => [...new Set(points.flatMap((point) => Object.keys(point)))].filter((key) => key.startsWith(prefix))
    .map((key) => ({ key, label: key.slice(prefix.length) }));
  const busiest = (prefix) => keys(prefix).map((each) => ({ ...each, mean: points.reduce((sum, point) => sum + (point[each.key] || 0), 0) }))
    .sort((one, other) => other.mean - one.mean).slice(0, 6);
  const unit = (report.sources || []).some((source) => source.unit === "s") ? seconds : quantity;
  return [el("div", { class: "charts" }, ...rates(points),
    chart("Busy, by component", busiest("busy:"), points, percent, { least: 1 }),
    chart("Blocked by back-pressure", busiest("blocked:"), points, percent, { least: 1 }),
    chart("Sources behind the furthest one", busiest("behind:"), points, unit, { none: "No source has an event time yet." }),
    chart("Rows that wait for slower sources", [{ key: "waiting_rows" }], points, quantity),
    chart("Rows in the windows", [{ key: "window_rows" }], points, quantity),
    chart("State in memory", [{ key: "state_bytes", label: "windows and payload" }, { key: "memory_bytes", label: "processes" }, { key: "free_memory_bytes", label: "free" }], points, bytes, { base: 1024, least: 1024 }),
    chart("Fullest window", [{ key: "window_fill" }], points, percent, { least: 1, none: "No window has a greatest number of rows." }),
    chart("On disk", [{ key: "spilled_bytes", label: "spilled" }, { key: "log_bytes", label: "log" }, { key: "checkpoint_bytes", label: "checkpoints" }], points, bytes, { base: 1024, least: 1024 }),
    chart("Messages under way", [{ key: "waiting_bytes" }], points, bytes, { base: 1024, least: 1024 }),
    chart("Late and rejected rows a second", keys("late:"), points, quantity, { none: "No row was late or rejected." }),
    chart("Recoveries so far", [{ key: "recoveries" }], points, quantity, { least: 1 }))];
}

function sources({ report }) {
  const found = report.sources || [];
  const late = Object.entries(report.late || {});
  return [el("div", { class: "stack" },
    el("section", { class: "card" }, el("h2", {}, "Sources"),
      found.length ? table(["stream", "source", "state", "has reached", "behind", "rows waiting"], found.map((source) => ({ hot: source.awaited,
        cells: [source.stream, source.source + (source.awaited ? "  ← all wait for this one" : ""), source.state, source.reached ?? "–", behind(source), quantity(source.waiting_rows)] })),
        { right: [4, 5], label: "Sources" }) : el("p", { class: "none" }, "No source is known here."),
      ...(report.unknown_streams || []).map((stream) => el("p", {}, `Nothing is known of stream “${stream}”: all wait for its first rows.`))),
    el("section", { class: "card" }, el("h2", {}, "Late and rejected rows"),
      late.length ? null : el("p", { class: "none" }, "None so far."),
      ...late.map(([reason, { rows, samples }]) => el("div", {}, el("h3", {}, `${reason}: ${quantity(rows)} rows; the last of them`),
        table(["stream", "source", "offset", "event time"], samples.map((row) => [row.stream, row.source, String(row.offset), row.event_time ?? "–"]), { label: reason })))))];
}

function processes({ report }) {
  const loads = new Map((report.components || []).flatMap((load) => load.parts.map((part) => [`${load.component}/${part.task}`, part])));
  const nodes = new Map();
  for (const worker of report.workers || []) nodes.set(worker.node, [...(nodes.get(worker.node) || []), worker]);
  if (!nodes.size) return [el("p", { class: "none" }, "No process runs.")];
  return [el("div", { class: "nodes" }, [...nodes].map(([node, workers]) => el("section", { class: "card" },
    el("h2", {}, node), el("p", { class: "fresh" }, `${bytes(workers[0].free_memory_bytes)} of memory and ${bytes(workers[0].free_disk_bytes)} of disk are free${workers.some((worker) => worker.free_state_bytes != null)
      ? `, and ${bytes(workers.find((worker) => worker.free_state_bytes != null).free_state_bytes)} where the state is kept` : ""}`),
    ...workers.map((worker) => el("div", { class: "worker" },
      el("header", {}, el("b", {}, worker.name), `process ${worker.process}`, el("span", {}, bytes(worker.memory_bytes)),
        worker.silent_seconds >= 3 ? el("strong", {}, `silent for ${seconds(worker.silent_seconds)}`) : null),
      ...worker.tasks.map((task) => {
        const load = loads.get(task);
        return el("div", { class: "task" }, el("span", {}, task.replace(/\/(\d+)$/, "[$1]")), load ? bar(load) : el("span"),
          el("span", { class: "fresh" }, load ? `${quantity(load.rows_in_per_second || load.rows_out_per_second)} rows/s` : ""));
      }))))))];
}

function query({ explanation, report }) {
  return [el("section", { class: "card" }, el("h2", {}, "What runs, and why"), el("pre", { tabindex: "0" }, explanation || "…"),
    report.waiting_for ? el("p", {}, report.waiting_for) : null)];
}

function errors(report) {
  return report.error ? el("section", { class: "card" }, el("h2", {}, "Why it failed"), el("pre", { tabindex: "0" }, report.error))
    : el("p", { class: "none" }, "There is nothing to show.");
}

function events({ report, lines }) {
  const shown = [...(report.events || [])].reverse();
  return [el("div", { class: "stack" },
    el("section", { class: "card" }, el("h2", {}, "Events"),
      ...shown.map((event) => el("div", {}, el("p", {}, el("b", {}, event.state), ` at ${clock(event.at)}${event.task ? `, task ${event.task}` : ""}`),
        event.text ? el("pre", { tabindex: "0" }, event.text) : null))),
    el("section", { class: "card" }, el("h2", {}, "Log"),
      lines.length ? el("div", { class: "log", tabindex: "0", role: "log" }, lines.slice(-500).map((line) => el("div", { class: line.level },
        el("time", {}, clock(line.at)), el("span", {}, line.component ? `${line.component}[${line.task}]` : line.worker || "–"), line.text,
        line.repeated > 1 ? ` (${line.repeated} times)` : ""))) : el("p", { class: "none" }, "Nothing has been logged.")))];
}

// The live page: asks the REST API every second and draws what it answers. It holds no state of its own but the view.

import { el, clock, seconds } from "./format.js";
import { hide } from "./tip.js";
import { VIEWS } from "./views.js";
import { offer } from "./actions.js";

const byId = (id) => document.getElementById(id);
const MARKS = { well: "✓", attention: "!", failed: "✕", recovering: "↻", starting: "…", stopped: "■" };
const KEPT_POINTS = 900, PAUSE = 1000, OLD_SECONDS = 5;
let token = null; // of a page in a frame, which has no cookie
const page = { name: null, view: "overview", report: {}, graph: null, points: [], lines: [], explanation: "", chosen: null, choose, by: "component", drawBy };

async function ask(path, options) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const answer = await fetch(`/api/v1/topologies${path}`, { credentials: "same-origin", headers, ...options });
  const body = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw Object.assign(new Error(body.error), { status: answer.status });
  return body;
}

const at = (rest = "") => `/${encodeURIComponent(page.name)}${rest}`;

async function look() {
  try {
    await listed();
    if (page.name) await watched();
    fresh(null);
  } catch (error) {
    fresh(error);
  }
  setTimeout(look, PAUSE);
}

async function listed() {
  const chooser = byId("topology"), names = (await ask("")).topologies.map((each) => each.name);
  if (names.join("\n") !== [...chooser.options].map((option) => option.value).join("\n"))
    chooser.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
  const wanted = decodeURIComponent(location.hash.slice(1).split("/")[0] || "");
  const name = names.includes(page.name) ? page.name : names.includes(wanted) ? wanted : names[0] || null;
  if (name !== page.name) show(name);
  if (!name) empty();
}

function show(name) {
  Object.assign(page, { name, report: {}, graph: null, points: [], lines: [], explanation: "", chosen: null });
  byId("topology").value = name ?? "";
  remember();
}

async function watched() {
  const name = page.name;
  const report = await ask(at());
  if (report.components) {
    const last = page.points.length ? page.points[page.points.length - 1].at : 0;
    const [series, graph] = await Promise.all([ask(at(`/series?after=${last}`)),
      page.graph && page.by === "component" && page.graph.boxes.every((box) => report.components.some((each) => each.component === box.name && each.tasks === box.parallelism))
        ? page.graph : ask(at(`/graph?by=${page.by}`))]);
    if (page.view === "query") page.explanation = (await ask(at("/explanation"))).text;
    if (page.view === "events") page.lines.push(...(await ask(at(`/logs?after=${page.lines.length ? page.lines[page.lines.length - 1].number : -1}`))).lines);
    if (name !== page.name || (graph.groups.length > 0) !== (page.by === "node")) return;
    page.points = [...page.points, ...series.points].slice(-KEPT_POINTS);
    page.graph = graph;
  }
  page.report = report;
  draw();
}

function asOf(report) {
  const lives = ["running", "recovering", "starting"].includes(report.state);
  if (lives && report.age_seconds > OLD_SECONDS) return [`It has not answered for ${seconds(report.age_seconds)}: what you see is old.`, true];
  return [report.at ? `at ${clock(report.at)}` : "", false];
}

function draw() {
  const { report } = page;
  const verdict = report.verdict || { health: report.state, summary: report.error ? `It has failed: ${lastLine(report.error)}` : report.state,
    speed: "–", bottleneck: "–", loss: "–", outlook: "–" };
  document.title = `${MARKS[verdict.health] || ""} ${report.name} – Interlace`;
  byId("state").className = `badge ${report.state}`;
  setText("state", report.state);
  byId("verdict").className = `verdict ${verdict.health}`;
  byId("verdict").querySelector(".mark").textContent = MARKS[verdict.health] || "";
  for (const key of ["summary", "speed", "bottleneck", "loss", "outlook"]) setText(key, verdict[key]);
  offer(byId("actions"), report, (action, body) => ask(at(`/actions/${action}`), { method: "POST", body: JSON.stringify(body) }));
  redraw();
}

function redraw() {
  const view = byId("view"), chosen = VIEWS.find((each) => each.id === page.view);
  if (view.contains(getSelection().anchorNode) && !getSelection().isCollapsed) return; // somebody is copying text
  const focus = focused(view);
  const places = [...view.querySelectorAll(".log, .scroll")].map((each) => each.scrollTop);
  view.replaceChildren(...chosen.draw(page));
  [...view.querySelectorAll(".log, .scroll")].forEach((each, number) => { each.scrollTop = places[number] ?? each.scrollHeight; });
  if (focus) view.querySelectorAll("[tabindex], button, a")[focus.number]?.focus({ preventScroll: true });
  else if (!view.querySelector(":hover")) hide();
}

function focused(view) {
  const number = [...view.querySelectorAll("[tabindex], button, a")].indexOf(document.activeElement);
  return number < 0 ? null : { number };
}

function empty() {
  page.report = {};
  setText("summary", "No topology runs here. Start one with “interlace deploy”.");
  byId("verdict").className = "verdict";
  byId("state").textContent = "";
  byId("view").replaceChildren();
  byId("actions").replaceChildren();
}

function fresh(error) {
  const mark = byId("fresh");
  const [text, isOld] = error ? [error.status ? error.message : "The server does not answer: what you see is old.", true] : asOf(page.report);
  mark.className = isOld ? "fresh stale" : "fresh";
  mark.textContent = text;
}

function choose(component) {
  page.chosen = component;
  redraw();
}

function drawBy(by) {
  Object.assign(page, { by, graph: null });
  watched().catch(fresh);
}

function select(id) {
  page.view = id;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const own = tab.dataset.view === id;
    tab.setAttribute("aria-selected", own);
    tab.tabIndex = own ? 0 : -1;
  }
  remember();
  if (page.report.name) { redraw(); watched().catch(fresh); }
}

function remember() {
  history.replaceState(null, "", `#${encodeURIComponent(page.name ?? "")}/${page.view}`);
}

function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text; // a screen reader speaks only what changes
}

// A browser may refuse storage, above all to a page in a frame.
function recall(storage, key) {
  try { return storage().getItem(key); } catch { return null; }
}

function keep(storage, key, value) {
  try { storage().setItem(key, value); } catch { /* it is forgotten with the page */ }
}

function enter() {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    keep(() => sessionStorage, "token", given[1]);
    history.replaceState(null, "", "#");
  }
  token = given ? given[1] : recall(() => sessionStorage, "token");
}

const lastLine = (text) => text.trim().split("\n").pop();

function start() {
  enter();
  const tabs = document.querySelector("[role=tablist]");
  tabs.append(...VIEWS.map((view) => el("button", { role: "tab", type: "button", "data-view": view.id, "aria-controls": "view", onclick: () => select(view.id) }, view.title)));
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const number = (VIEWS.findIndex((view) => view.id === page.view) + step + VIEWS.length) % VIEWS.length;
    select(VIEWS[number].id);
    tabs.children[number].focus();
  });
  byId("topology").addEventListener("change", (event) => { show(event.target.value); watched().catch(fresh); });
  const root = document.documentElement;
  root.dataset.theme = recall(() => localStorage, "theme") || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    keep(() => localStorage, "theme", root.dataset.theme);
  });
  const wanted = location.hash.split("/")[1];
  select(VIEWS.some((view) => view.id === wanted) ? wanted : "overview");
  look();
}

start();

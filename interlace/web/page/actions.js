// Buttons for what a topology offers; each asks before it acts.

import { el } from "./format.js";

const WORDS = {
  deactivate: ["Deactivate", "Take no more rows into “{name}” until it is activated? Whoever sends rows waits; windows and results stay."],
  activate: ["Activate", "Let “{name}” take rows again?"],
  savepoint: ["Savepoint", "Write a savepoint of “{name}”?"],
  rebalance: ["Rebalance", "How many tasks shall each component of “{name}” have? Results pause meanwhile."],
  drain: ["Drain", "End all inputs of “{name}”? What is under way is finished; no more rows are taken."],
  "drain-and-stop": ["Drain and stop", "End all inputs of “{name}”, and stop it as soon as somebody has read all results?"],
  stop: ["Stop", "Stop “{name}” now, for everyone who uses it?"],
};
const dialog = document.getElementById("confirm");
let shown = "";

export function offer(place, report, act) {
  const offered = report.state === "stopped" ? [] : report.actions || [];
  const key = `${report.name} ${offered} ${report.state}`;
  if (key === shown) return;
  shown = key;
  place.replaceChildren(...offered.map((action) => el("button", { type: "button", class: action.endsWith("stop") ? "danger" : null, "data-action": action,
    onclick: () => confirm(action, report, act) }, WORDS[action][0])));
}

function confirm(action, report, act) {
  const [title, question] = WORDS[action];
  document.getElementById("question").textContent = question.replace("{name}", report.name);
  document.getElementById("refusal").textContent = "";
  const yes = document.getElementById("yes"), fields = document.getElementById("fields");
  yes.textContent = title;
  const parts = action === "rebalance" ? (report.components || []).filter((each) => each.kind === "bolt") : [];
  fields.replaceChildren(...parts.map((each) => el("label", {}, el("span", { class: "gap" }, each.component),
    el("input", { type: "number", min: "1", value: String(each.tasks), name: each.component, "data-was": String(each.tasks) }))));
  yes.onclick = async (event) => {
    event.preventDefault();
    yes.disabled = true;
    try {
      const body = {};
      if (action === "rebalance") body.tasks = Object.fromEntries([...fields.querySelectorAll("input")]
        .filter((input) => input.value !== input.dataset.was).map((input) => [input.name, Number(input.value)]));
      const answer = await act(action, body);
      if (typeof answer.result === "string") document.getElementById("question").textContent = `${title}: ${answer.result}`;
      else dialog.close();
    } catch (error) {
      document.getElementById("refusal").textContent = error.message;
    } finally {
      yes.disabled = false;
    }
  };
  dialog.showModal();
}

// Asks the process once a second for its numbers, and shows them. All texts from the process become text nodes: names of
// fibers are what clients have sent.

import { address, ask } from "./client.js";
import { byId, element, fill } from "./elements.js";
import { refreshFibers, watchFilter } from "./fibers.js";
import { refreshNames, watchNames } from "./names.js";
import { Card } from "./schedulers.js";
import { refreshStalls } from "./stalls.js";

const INTERVAL = 1000;
// After slow answers the page rests longer, as they may cost the process much. But it must not lose sight of a process
// that is busy.
const REST = 9;
const LONGEST_REST = 3000;
// Milliseconds after which a process that does not answer any more is forgotten: a cluster replaces its workers.
const FORGOTTEN = 300000;

// By pid: the schedulers' cards, and when the process has answered. In a cluster, any worker may answer.
const processes = new Map();
// The process that is shown: the one that has answered last, unless the user has chosen one.
let shown = null;
let chosen = null;
let paused = false;
let timer = null;
let asking = false;

const isShown = (pid) => pid === shown;
const noScheduler = element("p", { className: "empty" }, "This process has no Heddle scheduler at the moment.");

function forget(pid) {
  for (const card of processes.get(pid).cards.values()) card.remove();
  processes.delete(pid);
  byId("pid").querySelector(`option[value="${pid}"]`).remove();
  if (chosen === pid) chosen = null;
}

function showProcess(report) {
  if (!processes.has(report.pid)) {
    processes.set(report.pid, { cards: new Map() });
    byId("pid").append(element("option", { value: report.pid }, String(report.pid)));
  }
  const process = processes.get(report.pid);
  process.answered = performance.now();
  for (const [pid, { answered }] of processes) if (process.answered - answered > FORGOTTEN) forget(pid);
  byId("processes").hidden = processes.size < 2;
  shown = chosen ?? report.pid;
  byId("process").textContent = `Process ${shown} · Heddle ${report.heddle} · Ruby ${report.ruby}`;
  const { cards } = process;
  for (const scheduler of report.schedulers) {
    const card = cards.get(scheduler.id) ?? new Card(cards.size < 4);
    cards.set(scheduler.id, card);
    card.add(report.at, scheduler);
  }
  const ids = new Set(report.schedulers.map((scheduler) => scheduler.id));
  for (const [id, card] of cards) {
    if (ids.has(id)) continue;
    card.remove();
    cards.delete(id);
  }
  showCards();
  return report.pid;
}

function showCards() {
  const cards = [...(processes.get(shown)?.cards.values() ?? [])];
  fill(byId("schedulers"), cards.length ? cards.map((card) => card.element) : [noScheduler]);
  for (const card of cards) card.show();
}

function live(state, text) {
  byId("live").className = `live ${state}`;
  byId("live").lastChild.textContent = text;
}

const failed = (error) => live("off", `no answer: ${error.message}`);

function notice(text, bad = false) {
  byId("notice").hidden = !text;
  byId("notice").textContent = text;
  byId("notice").className = bad ? "bad" : "";
}

async function refresh() {
  const pid = showProcess(await ask("stats.json"));
  await refreshNames(isShown);
  await refreshFibers(isShown);
  await refreshStalls(isShown);
  return pid;
}

async function tick() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  const begun = performance.now();
  try {
    const pid = await refresh();
    live("on", paused ? "paused" : isShown(pid) ? "live" : `process ${pid} answers`);
  } catch (error) {
    failed(error);
  } finally {
    asking = false;
  }
  const took = performance.now() - begun;
  const rest = Math.max(INTERVAL - took, Math.min(REST * took, LONGEST_REST));
  if (!paused && !document.hidden) timer = setTimeout(tick, rest);
}

async function record() {
  const button = byId("trace");
  const label = button.textContent;
  button.disabled = true;
  notice("");
  let left = 5;
  const count = () => (button.textContent = left > 0 ? `Recording: ${left--} s` : "Sending the file…");
  count();
  const counting = setInterval(count, 1000);
  try {
    const answer = await fetch(address("trace"), { method: "POST" });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const file = URL.createObjectURL(await answer.blob());
    const name = answer.headers.get("content-disposition").match(/filename="(.+)"/)[1];
    element("a", { href: file, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(file), 60000);
    notice(`Saved ${name}. ui.perfetto.dev opens it.`);
  } catch (error) {
    notice(`No trace: ${error.message}`, true);
  } finally {
    clearInterval(counting);
    button.textContent = label;
    button.disabled = false;
  }
}

// One key each, outside of fields: / to the filter, p pauses. Escape leaves the filter.
function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isField = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && event.target === byId("q")) {
    byId("q").value = "";
    byId("q").dispatchEvent(new Event("input"));
  } else if (!isField && event.key === "/") {
    event.preventDefault();
    byId("q").focus();
  } else if (!isField && event.key === "p") byId("pause").click();
}

watchNames(isShown, failed);
watchFilter(isShown, failed);
byId("pid").addEventListener("change", () => {
  chosen = Number(byId("pid").value) || null;
  shown = chosen ?? shown;
  showCards();
  tick();
});
byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", paused);
  byId("pause").textContent = paused ? "Continue" : "Pause";
  tick();
});
byId("trace").addEventListener("click", record);
document.addEventListener("keydown", press);
document.addEventListener("visibilitychange", () => document.hidden || tick());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const { cards } of processes.values()) for (const card of cards.values()) card.draw();
});
tick();

// Asks the process once a second for its numbers, fibers and stalls, and shows them. All texts from the process become
// text nodes: names of fibers are what clients have sent.

import { Card } from "./schedulers.js";
import { duration, element, number } from "./elements.js";

const INTERVAL = 1000;
// After slow answers the page rests longer, as they may cost the process much. But it must not lose sight of a process
// that is busy.
const REST = 9;
const LONGEST_REST = 3000;
const LIMIT = 200;
const MOST = 1000;
// The server sends the backtraces of so many fibers.
const OPEN = 50;

const $ = (id) => document.getElementById(id);
const at = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

// The schedulers' cards by process. In a cluster, any worker may answer.
const processes = new Map();
const open = { fibers: new Set(), stalls: new Set() };
// The process that is shown: the one that has answered last, unless the user has chosen one.
let shown = null;
let chosen = null;
let limit = LIMIT;
let paused = false;
let timer = null;
let asking = false;

function address(name, parameters = {}) {
  const target = new URL(name, import.meta.url);
  for (const [key, value] of Object.entries(parameters)) if (value) target.searchParams.set(key, value);
  return target;
}

async function ask(name, parameters) {
  const answer = await fetch(address(name, parameters), { signal: AbortSignal.timeout(15000) });
  if (!answer.ok) throw new Error((await answer.text()).trim().split("\n")[0]);
  return answer.json();
}

// Puts the rows into a table's body in this order. A row that stays in its place keeps the focus.
function fill(body, rows) {
  const wanted = new Set(rows);
  for (const row of [...body.children]) if (!wanted.has(row)) row.remove();
  let next = body.firstChild;
  for (const row of rows) {
    if (row === next) next = next.nextSibling;
    else body.insertBefore(row, next);
  }
}

// A table's rows by key. Each has a button that shows a backtrace in a row of its own.
class Rows {
  constructor(body, columns, opened) {
    Object.assign(this, { body, columns, opened, known: new Map() });
  }

  // `items`: { key, label, cells, backtrace, kind }, or { group }
  show(items) {
    const before = this.known;
    this.known = new Map();
    fill(this.body, items.flatMap((item) => {
      if (item.group) return [this.wide("group", item.group)];
      const row = before.get(item.key) ?? this.make(item.key);
      this.known.set(item.key, row);
      return this.update(row, item);
    }));
  }

  make(key) {
    const button = element("button", { type: "button", className: "row" });
    button.addEventListener("click", () => {
      if (!this.opened.delete(key)) this.opened.add(key);
      tick();
    });
    const pre = element("pre", { tabIndex: 0 });
    return {
      button,
      pre,
      row: element("tr"),
      detail: this.wide("detail", pre),
    };
  }

  wide(className, content) {
    return element("tr", { className }, element("td", { colSpan: this.columns }, content));
  }

  update(parts, item) {
    const { row, button, pre, detail } = parts;
    const isOpen = this.opened.has(item.key);
    const text = JSON.stringify([item.cells, item.kind, isOpen, item.backtrace]);
    if (text !== parts.text) {
      parts.text = text;
      button.replaceChildren(...item.label());
      button.setAttribute("aria-expanded", isOpen);
      row.className = item.kind ?? "";
      const cells = item.cells.map((cell, index) => {
        if (cell === null) return parts.first ??= element("td", {}, button);
        const { className = "", state, text = "" } = cell;
        return element("td", { className }, state ? element("span", { className: `state ${state}` }, state) : text);
      });
      if (item.indent !== undefined) parts.first.style.paddingInlineStart = `${14 + item.indent * 18}px`;
      fill(row, cells);
      pre.textContent = item.backtrace?.join("\n") || "no Ruby code: it has not started, or is in Heddle itself";
    }
    return isOpen ? [row, detail] : [row];
  }
}

const tables = {
  fibers: new Rows($("fibers"), 4, open.fibers),
  stalls: new Rows($("stalls"), 6, open.stalls),
};

function showProcess(report) {
  if (!processes.has(report.pid)) {
    processes.set(report.pid, new Map());
    $("pid").append(element("option", { value: report.pid }, String(report.pid)));
    $("processes").hidden = processes.size < 2;
  }
  shown = chosen ?? report.pid;
  $("process").textContent = `Process ${shown} · Heddle ${report.heddle} · Ruby ${report.ruby}`;
  const cards = processes.get(report.pid);
  for (const scheduler of report.schedulers) {
    const card = cards.get(scheduler.id) ?? new Card(cards.size < 4);
    cards.set(scheduler.id, card);
    card.add(report.at, scheduler);
  }
  const ids = new Set(report.schedulers.map((scheduler) => scheduler.id));
  for (const id of [...cards.keys()]) if (!ids.has(id)) cards.delete(id);
  showCards();
  return report.pid;
}

function showCards() {
  const cards = [...(processes.get(shown) ?? new Map()).values()];
  fill($("schedulers"), cards.length ? cards.map((card) => card.element) : [noScheduler]);
  for (const card of cards) card.show();
}

const noScheduler = element("p", { className: "empty" }, "This process has no Heddle scheduler at the moment.");

function fiberItem(fiber) {
  const name = fiber.name ?? fiber.block?.split("/").slice(-2).join("/");
  return {
    key: fiber.id,
    indent: Math.min(fiber.depth, 20),
    kind: fiber.match ? "" : "ancestor",
    backtrace: fiber.backtrace,
    label: () => [
      fiber.name === null ? element("span", { className: "place", title: fiber.block ?? "" }, name ?? "")
        : element("span", { className: "name" }, fiber.name),
      element("span", { className: name ? "id" : "" }, `${name ? " " : ""}fiber ${fiber.id}`),
      element("span", { className: "hidden-text" }, fiber.depth ? `, level ${fiber.depth + 1}` : ""),
    ],
    cells: [
      null,
      { state: fiber.state },
      { text: duration(fiber.seconds), className: "number" },
      { text: fiber.waiting_for ?? "" },
    ],
  };
}

function showFibers(report) {
  if (report.pid !== shown) return;
  const sum = (key) => report.schedulers.reduce((total, scheduler) => total + scheduler[key], 0);
  const sent = report.schedulers.flatMap((scheduler) => scheduler.fibers);
  const several = report.schedulers.length > 1;
  tables.fibers.show(report.schedulers.flatMap((scheduler) => {
    const items = scheduler.fibers.map(fiberItem);
    if (!several || !items.length) return items;
    const { thread, count, total } = scheduler;
    return [{ group: `${thread}: ${number(count)} of ${number(total)} fibers` }, ...items];
  }));
  const count = sum("count");
  const total = sum("total");
  $("fibers-count").textContent = count === total ? number(total) : `${number(count)} of ${number(total)} match`;
  const rest = count - sent.filter((fiber) => fiber.match).length;
  $("rest").hidden = rest <= 0 && sent.length > 0;
  $("rest").firstChild.textContent = sent.length
    ? `${number(rest)} more match; the filter finds them.` : "No fiber matches.";
  $("more").hidden = rest <= 0 || limit >= MOST;
}

function lateness({ ended, late_fibers: late, latest_by: by }) {
  if (!ended) return "–";
  return late ? `${number(late)}, by up to ${duration(by)}` : "0";
}

function showStalls(report) {
  if (report.pid !== shown) return;
  tables.stalls.show(report.stalls.map((stall) => ({
    key: stall.at,
    kind: "",
    backtrace: [...(stall.fiber ? [`${stall.fiber}`] : []), ...stall.backtrace],
    label: () => [at(stall.at)],
    cells: [
      null,
      { text: stall.ended ? duration(stall.duration) : `${duration(stall.duration)} so far`, className: "number" },
      {
        text: [
          [stall.native_method, stall.location].filter(Boolean).join(" called at ") || "in C code",
          stall.called_from && `from ${stall.called_from}`,
          stall.native_function && `in ${stall.native_function}`,
        ].filter(Boolean).join(", "),
        className: "mono",
      },
      { text: stall.thread },
      { text: lateness(stall), className: "number" },
      { text: number(stall.count), className: "number" },
    ],
  })));
  $("stalls-count").textContent = report.stalls.length ? `the last ${number(report.stalls.length)}` : "";
  $("no-stalls").hidden = report.stalls.length > 0;
  $("stalls-table").hidden = report.stalls.length === 0;
}

function filter() {
  const values = { q: $("q").value.trim(), state: $("state").value, order: $("order").value };
  return limit === LIMIT ? values : { ...values, limit };
}

function live(state, text) {
  $("live").className = `live ${state}`;
  $("live").lastChild.textContent = text;
}

function notice(text, bad = false) {
  $("notice").hidden = !text;
  $("notice").textContent = text;
  $("notice").className = bad ? "bad" : "";
}

// One after the other, so that the browser needs one connection, which one worker of a cluster answers.
async function refresh() {
  const pid = showProcess(await ask("stats.json"));
  const wanted = filter();
  $("fibers-json").href = address("fibers.json", wanted);
  showFibers(await ask("fibers.json", { ...wanted, open: [...open.fibers].slice(-OPEN).join(",") }));
  showStalls(await ask("stalls.json"));
  return pid;
}

async function tick() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  const begun = performance.now();
  try {
    const pid = await refresh();
    live("on", paused ? "paused" : pid === shown ? "live" : `process ${pid} answers`);
  } catch (error) {
    live("off", `no answer: ${error.message}`);
  } finally {
    asking = false;
  }
  const took = performance.now() - begun;
  const rest = Math.max(INTERVAL - took, Math.min(REST * took, LONGEST_REST));
  if (!paused && !document.hidden) timer = setTimeout(tick, rest);
}

async function record() {
  const button = $("trace");
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

let typing = null;
$("q").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(tick, 200);
});
for (const id of ["state", "order"]) $(id).addEventListener("change", tick);
$("filter").addEventListener("submit", (event) => event.preventDefault());
$("more").addEventListener("click", () => {
  limit = MOST;
  tick();
});
$("pid").addEventListener("change", () => {
  chosen = Number($("pid").value) || null;
  shown = chosen ?? shown;
  showCards();
  tick();
});
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  $("pause").textContent = paused ? "Continue" : "Pause";
  tick();
});
$("trace").addEventListener("click", record);
document.addEventListener("visibilitychange", () => document.hidden || tick());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const cards of processes.values()) for (const card of cards.values()) card.draw();
});
tick();

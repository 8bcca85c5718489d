// The fibers, filtered, and their backtraces.

import { address, ask } from "./client.js";
import { byId, duration, element, number } from "./elements.js";
import { showFrames } from "./frames.js";
import { splitBar } from "./split.js";
import { Rows } from "./rows.js";

const LIMIT = 200;
const MOST = 1000;
// The server sends the backtraces of so many fibers.
const OPEN = 50;
const TYPING = 150;

const backtraces = new Map();
const section = byId("fibers").closest("section");
const table = new Rows(byId("fibers"), ["Fiber", "Age", "State", "For", "Where the time went", "Waits for"],
  (key, isOpen) => {
    if (isOpen) showBacktraces(true);
    else backtraces.delete(key);
  });
let limit = LIMIT;
let wanted = "";

function filter() {
  const values = {
    q: byId("q").value.trim(),
    state: byId("state").value,
    order: byId("order").value,
    only: byId("all").checked ? "" : "named",
  };
  return limit === LIMIT ? values : { ...values, limit };
}

// A row is of a request, not of the fiber, which may serve another one in a second.
const keyOf = ({ id, name }) => `${id} ${name ?? ""}`;

// If the counting began while the fiber was in its state, it is older than it was counted.
function item(fiber) {
  const name = fiber.name ?? fiber.block?.split("/").slice(-2).join("/");
  const times = fiber.times;
  return {
    key: keyOf(fiber),
    text: JSON.stringify(fiber),
    indent: Math.min(fiber.depth, 20),
    kind: fiber.match ? "" : "ancestor",
    detail: (place) => showFrames(place, backtraces.get(keyOf(fiber))),
    label: () => [
      fiber.name === null ? element("span", { className: "place", title: fiber.block ?? "" }, name ?? "")
        : element("span", { className: "name" }, fiber.name),
      element("span", { className: name ? "id" : "" }, `${name ? " " : ""}fiber ${fiber.id}`),
      element("span", { className: "hidden-text" }, fiber.depth ? `, level ${fiber.depth + 1}` : ""),
    ],
    cells: [
      null,
      { text: times ? duration(Math.max(times.seconds, fiber.seconds)) : "–", className: "number" },
      { node: element("span", { className: `state ${fiber.state}` }, fiber.state) },
      { text: duration(fiber.seconds), className: "number" },
      { node: times ? splitBar(times) : "–" },
      { text: fiber.waiting_for ?? "" },
    ],
  };
}

function show(report) {
  const sum = (key) => report.schedulers.reduce((total, scheduler) => total + scheduler[key], 0);
  const sent = report.schedulers.flatMap((scheduler) => scheduler.fibers);
  const several = report.schedulers.filter((scheduler) => scheduler.fibers.length).length > 1;
  table.show(report.schedulers.flatMap((scheduler) => {
    const items = scheduler.fibers.map(item);
    if (!several || !items.length) return items;
    const { thread, count, total } = scheduler;
    return [{ group: `${thread}: ${number(count)} of ${number(total)} fibers` }, ...items];
  }));
  const count = sum("count");
  const total = sum("total");
  byId("fibers-count").textContent = count === total ? number(total) : `${number(count)} of ${number(total)}`;
  const rest = count - sent.filter((fiber) => fiber.match).length;
  byId("rest").hidden = rest <= 0 && sent.length > 0;
  byId("rest").firstChild.textContent = sent.length ? `${number(rest)} more match; the filter finds them.`
    : byId("all").checked ? "No fiber matches." : "No request or job matches. “All fibers” shows the others, too.";
  byId("more").hidden = rest <= 0 || limit >= MOST;
}

// Asks for the fibers, and shows them if the filter is still the same.
export async function refreshFibers(isShown, urgent = false) {
  const values = filter();
  const text = JSON.stringify(values);
  wanted = text;
  byId("fibers-json").href = address("fibers.json", values);
  const report = await ask("fibers.json", values, { urgent });
  if (wanted !== text || !isShown(report.pid)) return;
  show(report);
  section.setAttribute("aria-busy", "false");
  await showBacktraces(urgent);
}

async function showBacktraces(urgent = false) {
  const keys = [...table.opened].slice(-OPEN);
  if (!keys.length) return;
  const ids = keys.map((key) => key.split(" ")[0]).join(",");
  const { fibers } = await ask("backtraces.json", { ids }, { urgent });
  const found = new Map(fibers.map((fiber) => [keyOf(fiber), fiber.backtrace]));
  for (const key of backtraces.keys()) if (!table.opened.has(key)) backtraces.delete(key);
  for (const [key, backtrace] of found) if (table.opened.has(key)) backtraces.set(key, backtrace);
  for (const key of table.opened) {
    const parts = table.known.get(key);
    if (parts) parts.item.detail(parts.place);
  }
}

// The list is of another filter until the answer arrives: the page says so at once.
export function watchFilter(isShown, failed) {
  let typing = null;
  const change = (delay) => {
    limit = LIMIT;
    // Answers to the old filter are not shown any more.
    wanted = "";
    section.setAttribute("aria-busy", "true");
    byId("fibers-count").textContent = "filtering…";
    clearTimeout(typing);
    typing = setTimeout(() => refreshFibers(isShown, true).catch(failed), delay);
  };
  byId("q").addEventListener("input", () => change(TYPING));
  for (const id of ["state", "order", "all"]) byId(id).addEventListener("change", () => change(0));
  byId("filter").addEventListener("submit", (event) => event.preventDefault());
  byId("more").addEventListener("click", () => {
    change(0);
    limit = MOST;
  });
}

// Shows the fibers that contain the text, of which the process may have cut off the end.
export function find(text) {
  byId("q").value = text.replace(/…$/, "");
  byId("q").dispatchEvent(new Event("input"));
  section.scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  byId("q").focus({ preventScroll: true });
}

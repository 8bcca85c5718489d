// The requests and jobs by name: which are slow, which take the CPU, what they wait for, which are late and why.

import { ask, address } from "./client.js";
import { byId, count, duration, element, fill, number, percent, rate } from "./elements.js";
import { find } from "./fibers.js";
import { Rows } from "./rows.js";
import { parts, splitBar, totalOf } from "./split.js";
import { legend, Timeline } from "./timeline.js";

const HEADINGS = ["Name", "Now", "Per s", "p50", "p99", "Ran", "Turn", "Where the time went"];
const SORTS = {
  total: (row) => totalOf(row),
  running: (row) => row.running ?? -1,
  per_second: (row) => row.per_second,
  p50: (row) => row.p50 ?? -1,
  p99: (row) => row.p99 ?? row.max ?? -1,
  ran: (row) => row.ran,
  runnable: (row) => row.runnable,
};
// What is worth a person's time only if it lasts so long.
const NOTABLE = 0.1;
// A name that takes less of the time of all is not the answer to what is slow.
const SHARE = 0.1;
// How many names of late fibers are listed.
const LATE = 8;
const OTHER = "other";
const NO_FIBER = "no fiber ran";
const OTHERS = "other threads or programs had the CPU";

const table = new Rows(byId("names"), HEADINGS);
const label = (name) => (name === OTHER ? "other names" : name || "fibers without a name");
const isShown = (kind) => byId("all").checked || !["heddle", "unnamed"].includes(kind);

let sort = "total";
let report = null;

function details(place, row, seconds) {
  const total = totalOf(row);
  const items = parts(row).filter(([, value]) => value > 0);
  const list = element("dl", { className: "parts" }, ...items.flatMap(([name, value, kind]) => [
    element("dt", {}, element("i", { className: kind }), name),
    element("dd", {}, `${duration(value)}, ${percent(value / total)}`),
  ]));
  const facts = [
    `${count(row.finished, "finished one")} in ${duration(seconds)}`,
    row.max ? `the longest: ${duration(row.max)}` : "",
    row.preemptions ? `preempted ${count(row.preemptions, "time")}` : "",
  ].filter(Boolean).join(" · ");
  const nodes = [element("p", { className: "hint" }, facts), list];
  if (row.name && row.running) {
    // What is before the first part of a path that stands for any.
    const text = row.name.split(":id")[0];
    const button = element("button", { type: "button" }, `Show its ${count(row.running, "fiber")}`);
    button.addEventListener("click", () => find(text));
    nodes.push(button);
  }
  // The button keeps the focus while nothing has changed.
  const content = nodes.map((node) => node.textContent).join("\n");
  if (place.dataset.content === content) return;
  place.dataset.content = content;
  place.replaceChildren(...nodes);
}

function item(row, seconds) {
  const cells = [
    null,
    { text: row.running === undefined ? "–" : number(row.running), className: "number" },
    { text: rate(row.per_second), className: "number" },
    { text: duration(row.p50), className: "number" },
    { text: duration(row.p99), className: `number ${row.p99 >= 1 ? "long" : ""}` },
    { text: percent(row.ran / seconds), className: `number ${row.ran / seconds >= 0.5 ? "long" : ""}` },
    { text: percent(totalOf(row) ? row.runnable / totalOf(row) : 0), className: "number" },
    { node: splitBar(row, 2) },
  ];
  return {
    key: label(row.name),
    text: JSON.stringify([row, seconds]),
    kind: row.name === null || row.name === OTHER ? "ancestor" : "",
    label: () => [element("span", { className: "name" }, label(row.name))],
    cells,
    detail: (place) => details(place, row, seconds),
  };
}

function showTable(slot) {
  const { seconds, names } = slot ?? report;
  const shown = names.filter((row) => isShown(row.kind)).sort((a, b) => SORTS[sort](b) - SORTS[sort](a));
  table.show(shown.map((row) => item(row, Math.max(seconds, 0.001))));
  byId("no-names").hidden = shown.length > 0;
  byId("names-count").textContent = slot ? "" : `the last ${number(seconds)} s`;
  for (const button of byId("names-table").querySelectorAll("th button")) {
    const isSorted = button.dataset.sort === sort;
    button.parentElement.setAttribute("aria-sort", isSorted ? "descending" : "none");
  }
}

// A question and its answer.
function answer(id, text, note, level) {
  const tile = byId(id);
  tile.className = `answer ${level}`;
  tile.querySelector("strong").textContent = text;
  tile.querySelector("small").textContent = note;
}

const greatest = (rows, value) => rows.reduce((best, row) => (best && value(best) >= value(row) ? best : row), null);

// All names beyond the limit together are no answer.
function showSlowest(rowsOfAll) {
  const rows = rowsOfAll.filter((row) => row.name !== OTHER);
  const all = rows.reduce((sum, row) => sum + totalOf(row), 0);
  // Of those that cost their callers most, the slowest one.
  const worst = greatest(rows.filter((row) => totalOf(row) >= SHARE * all), (row) => row.p99 ?? row.max ?? 0);
  const seconds = worst?.p99 ?? worst?.max;
  if (!seconds) return answer("slowest", "Nothing yet", "", "good");
  const [name, longest] = greatest(parts(worst), ([, value]) => value);
  return answer("slowest", label(worst.name), `p99 ${duration(seconds)}, ${number(worst.running)} running · ` +
    `${percent(longest / Math.max(totalOf(worst), 1e-9))} ${name}`,
  seconds >= 1 ? "bad" : seconds >= NOTABLE ? "warn" : "good");
}

function showComputing(rows, seconds) {
  // The requests of the page itself are not what the user asks about.
  const row = greatest(rows.filter((each) => each.kind !== "heddle"), (each) => each.ran);
  if (!row || !row.ran) return answer("computing", "Nothing", "", "good");
  const share = row.ran / seconds;
  const all = rows.reduce((sum, each) => sum + each.ran, 0) / seconds;
  const preempted = row.preemptions ? ` · preempted ${count(row.preemptions, "time")}` : "";
  return answer("computing", `${label(row.name)}: ${percent(share)}`, `of the thread’s time, all together ${percent(all)}${preempted}`,
    share >= 0.5 ? "bad" : share >= 0.25 ? "warn" : "good");
}

// Of very many waiting fibers the process has looked at those alone that wait longest.
const isPart = () => report.described < report.waiting;
const fibersOf = (group) => (isPart() ? `${number(group.count)}+ fibers` : count(group.count, "fiber"));

function showWaiting(waits) {
  const group = waits.find((each) => each.longest >= NOTABLE) ?? waits[0];
  if (!group) return answer("waiting", "Nothing waits", "", "good");
  return answer("waiting", `${fibersOf(group)}: ${group.waiting_for}`,
    `the longest for ${duration(group.longest)}`,
    group.count > 1 && group.longest >= 1 ? "bad" : group.longest >= NOTABLE ? "warn" : "good");
}

// The late fibers by name, with what ran meanwhile: { name, times, longest, waited, causes: [[name, seconds], …] }.
// If little of the wait is known, the process itself has not run.
function lateByName(late) {
  const groups = new Map();
  for (const each of late) {
    const group = groups.get(each.name) ?? { name: each.name, times: 0, longest: 0, waited: 0, ran: new Map() };
    groups.set(each.name, group);
    group.times += 1;
    group.waited += each.waited;
    group.longest = Math.max(group.longest, each.waited);
    for (const { name, ran } of each.ran_meanwhile) group.ran.set(name, (group.ran.get(name) ?? 0) + ran);
  }
  return [...groups.values()].sort((a, b) => b.waited - a.waited).map(({ ran, ...group }) => {
    const known = [...ran.values()].reduce((sum, seconds) => sum + seconds, 0);
    const rest = Math.max(0, group.waited - known);
    const causes = [...ran, ...(known < group.waited / 5 ? [[NO_FIBER, rest]] : [])];
    return { ...group, causes: causes.sort(([, one], [, other]) => other - one).slice(0, 3) };
  });
}

function showLateness(groups) {
  if (!groups.length) return answer("late", "No fiber", "in the last 10 s, none by 10 ms or more", "good");
  const causes = new Map();
  for (const group of groups) {
    for (const [name, seconds] of group.causes) causes.set(name, (causes.get(name) ?? 0) + seconds);
  }
  const sorted = [...causes].sort(([, one], [, other]) => other - one);
  // A name says more than that there is none, unless it explains far less.
  const [name] = sorted.find(([each, seconds]) => each && seconds * 3 >= sorted[0][1]) ?? sorted[0];
  const times = groups.reduce((sum, group) => sum + group.times, 0);
  const longest = Math.max(...groups.map((group) => group.longest));
  const others = name === NO_FIBER ? `: ${OTHERS}` : "";
  return answer("late", `because ${name === NO_FIBER ? name : `of ${label(name)}`}`,
    `${count(times, "time")} in the last 10 s, by up to ${duration(longest)}${others}`,
    longest >= NOTABLE ? "bad" : "warn");
}

// "36 fibers wait for sleep", "1 fiber is reading …"
function verb({ count: fibers, waiting_for: text }) {
  if (/^(waiting|reading|writing) /.test(text)) return fibers === 1 ? "is" : "are";
  return fibers === 1 ? "waits for" : "wait for";
}

function showWaits(waits) {
  const total = waits.reduce((sum, group) => sum + group.count, 0);
  fill(byId("waits"), waits.map((group) => {
    const bar = element("i", { className: "wait" });
    bar.style.flexGrow = group.count / total;
    const rest = element("i");
    rest.style.flexGrow = 1 - group.count / total;
    const button = element("button", { type: "button", className: "link", title: "Show these fibers" },
      `${fibersOf(group)} ${verb(group)} ${group.waiting_for}`);
    button.addEventListener("click", () => find(group.waiting_for.split(/ \(|, \d/)[0]));
    return element("li", {}, button, element("span", { className: "bar", ariaHidden: "true" }, bar, rest),
      element("small", {}, `the longest for ${duration(group.longest)}`));
  }));
  byId("no-waits").hidden = waits.length > 0;
  byId("waits-count").textContent = isPart()
    ? `of ${number(report.waiting)} fibers that wait, the ${number(report.described)} that have waited longest` : "";
}

function showLate(groups) {
  fill(byId("lates"), groups.slice(0, LATE).map((group) => element("li", {},
    element("strong", {}, label(group.name)), ` waited for a turn, for up to ${duration(group.longest)} `,
    element("small", {}, group.times > 1 ? `${number(group.times)} times` : ""),
    element("div", { className: "because" }, "meanwhile: ", group.causes.map(([name, seconds]) => (
      name === NO_FIBER ? `${name} for ${duration(seconds)} (${OTHERS})` : `${label(name)} ran ${duration(seconds)}`)).join(", ")))));
  byId("no-lates").hidden = groups.length > 0;
}

// The lists are made anew only if they have changed, so that a button keeps the focus.
const shown = {};
function changed(key, value) {
  const text = JSON.stringify(value);
  if (shown[key] === text) return false;
  shown[key] = text;
  return true;
}

const timeline = new Timeline((slot) => report && showTable(slot));

function showReport() {
  const rows = report.names.filter((row) => isShown(row.kind));
  const seconds = Math.max(report.seconds, 0.001);
  timeline.show(report.history, (row) => isShown(row.kind));
  showTable(timeline.slot);
  showSlowest(rows);
  showComputing(report.names, seconds);
  showWaiting(report.waits);
  const late = lateByName(report.late);
  showLateness(late);
  if (changed("waits", [report.waits, isPart() && report.waiting])) showWaits(report.waits);
  if (changed("late", late)) showLate(late);
}

const parameters = () => ({ window: byId("window").value, only: byId("all").checked ? "" : "named" });

export async function refreshNames(isProcess, urgent = false) {
  const values = parameters();
  byId("names-json").href = address("names.json", values);
  const found = await ask("names.json", values, { urgent });
  if (JSON.stringify(values) !== JSON.stringify(parameters()) || !isProcess(found.pid)) return;
  report = found;
  byId("names").closest("section").setAttribute("aria-busy", "false");
  showReport();
}

export function watchNames(isProcess, failed) {
  legend();
  for (const id of ["window", "all"]) {
    byId(id).addEventListener("change", () => {
      byId("names").closest("section").setAttribute("aria-busy", "true");
      refreshNames(isProcess, true).catch(failed);
    });
  }
  byId("names-table").addEventListener("click", (event) => {
    const wanted = event.target.closest("th button")?.dataset.sort;
    if (!wanted || !report) return;
    sort = wanted;
    showTable(timeline.slot);
  });
}

// Where the time of fibers went, as a bar and in words.

import { duration, element, percent } from "./elements.js";

const KINDS = {
  sleep: "sleep",
  block: "locks and queues",
  io: "I/O",
  process: "processes",
  address: "host names",
  suspend: "Heddle.schedule",
  close: "the end of other fibers",
  raise: "Fiber#raise",
  resume: "fibers that it has resumed",
};

export const waitName = (kind) => KINDS[kind] ?? kind;

export const waitedIn = ({ waited }) => (typeof waited === "number" ? waited
  : Object.values(waited ?? {}).reduce((sum, seconds) => sum + seconds, 0));

export const totalOf = (times) => times.ran + times.runnable + waitedIn(times);

// [["ran", 0.2, "ran"], ["waited for I/O", 1.2, "wait"], …], the longest wait first
export function parts(times) {
  const waits = typeof times.waited === "number" ? [["waited", times.waited, "wait"]]
    : Object.entries(times.waited ?? {}).sort(([, a], [, b]) => b - a)
      .map(([kind, seconds]) => [`waited for ${waitName(kind)}`, seconds, "wait"]);
  return [["ran", times.ran, "ran"], ["waited for its turn", times.runnable, "turn"], ...waits];
}

// The bar, and the greatest parts in words.
export function splitBar(times, words = 1) {
  const total = totalOf(times);
  const all = parts(times);
  const bar = element("span", { className: "bar" }, ...all.map(([, seconds, kind]) => {
    const piece = element("i", { className: kind });
    piece.style.flexGrow = total > 0 ? seconds / total : 0;
    return piece;
  }));
  const greatest = all.filter(([, seconds]) => total > 0 && seconds / total >= 0.005).sort(([, a], [, b]) => b - a);
  bar.setAttribute("aria-hidden", "true");
  const text = greatest.slice(0, words).map(([name, seconds]) => `${percent(seconds / total)} ${name}`).join(" · ");
  const title = greatest.map(([name, seconds]) => `${duration(seconds)} ${name}`).join("\n");
  return element("span", { className: "split", title }, bar, element("small", {}, text || "nothing yet"));
}

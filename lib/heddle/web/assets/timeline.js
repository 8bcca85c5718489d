// The last minutes as bars: how long the named fibers ran, waited for their turn, and waited for something.

import { byId, drawing, duration, element, fill, time } from "./elements.js";
import { totalOf, waitedIn } from "./split.js";

const HEIGHT = 44;
const WIDTH = 10;
// Five minutes of ten seconds. In a slot without fibers nothing was counted: it is missing.
const SLOTS = 30;
const SECONDS = 10;
// The present slot may have just begun.
const SHORTEST = 1;

const positionOf = (slot) => SLOTS - 1 - Math.floor(slot.ago / SECONDS);

function bar(times, seconds, top, x) {
  let y = HEIGHT;
  return [["ran", times.ran], ["turn", times.runnable], ["wait", waitedIn(times)]].map(([kind, value]) => {
    const height = top > 0 ? (value / seconds / top) * HEIGHT : 0;
    y -= height;
    return drawing("rect", { class: kind, x: x + 1, y, width: WIDTH - 2, height });
  });
}

export class Timeline {
  // `chosen(slot)` is called with one of the history's entries, or null for now.
  constructor(chosen) {
    this.chosen = chosen;
    this.place = byId("timeline");
    this.range = byId("moment");
    this.number = null;
    this.slots = [];
    this.range.max = SLOTS;
    this.range.addEventListener("input", () => this.choose(Number(this.range.value)));
    this.place.addEventListener("click", (event) => {
      const box = this.place.getBoundingClientRect();
      this.choose(Math.floor(((event.clientX - box.left) / box.width) * SLOTS));
    });
    byId("now").addEventListener("click", () => this.choose(SLOTS));
  }

  choose(position) {
    const slot = this.slots.find((each) => positionOf(each) === position) ?? null;
    this.number = slot?.number ?? null;
    this.describe();
    this.chosen(slot);
  }

  // The slot that the user has chosen, or null for now.
  get slot() {
    return this.slots.find((slot) => slot.number === this.number) ?? null;
  }

  // `visible(row)` says whether a name is shown.
  show(history, visible) {
    this.slots = history;
    if (!this.slot) this.number = null;
    const sums = this.slots.map((slot) => slot.names.filter(visible)
      .reduce((sum, row) => ({
        ran: sum.ran + row.ran, runnable: sum.runnable + row.runnable, waited: sum.waited + waitedIn(row),
      }), { ran: 0, runnable: 0, waited: 0 }));
    const top = Math.max(0, ...sums.map((sum, index) => totalOf(sum) / this.length(index)));
    const bars = sums.flatMap((sum, index) => (
      bar(sum, this.length(index), top, positionOf(this.slots[index]) * WIDTH)));
    const position = this.slot ? positionOf(this.slot) : SLOTS;
    const mark = this.slot
      ? [drawing("rect", { class: "mark", x: position * WIDTH, y: 0, width: WIDTH, height: HEIGHT })] : [];
    this.place.replaceChildren(drawing("svg", {
      viewBox: `0 0 ${SLOTS * WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true",
    }, ...mark, ...bars));
    this.range.value = position;
    byId("timeline-top").textContent = top > 0 ? `up to ${top < 10 ? top.toFixed(1) : Math.round(top)} at a time` : "";
    this.describe();
  }

  length(index) {
    return Math.max(SHORTEST, this.slots[index].seconds);
  }

  describe() {
    const slot = this.slot;
    const text = slot
      ? `${time(slot.at)} – ${time(slot.at + slot.seconds)}, ${duration(slot.ago)} ago` : "now";
    this.range.setAttribute("aria-valuetext", text);
    byId("now").hidden = !slot;
    byId("moment-text").textContent = slot ? text : "";
  }
}

export const legend = () => fill(byId("legend"), [
  ["ran", "ran"], ["turn", "waited for its turn"], ["wait", "waited for something"],
].map(([kind, text]) => element("span", { className: "key" }, element("i", { className: kind }), text)));

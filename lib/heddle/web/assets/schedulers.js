// A scheduler's card: its figures, and charts of its lag and its load, which uPlot draws.

import { duration, element, number, percent, time } from "./elements.js";

const HEIGHT = 84;
// Five minutes.
const KEPT = 300;
// Seconds without an answer after which a line has a gap.
const GAP = 5;

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// 1, 2 or 5 times a power of ten: a scale ends with a round number.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((each) => each * power >= value) ?? 10);
}

const KINDS = {
  lag: { color: "--lag", format: duration, range: (top) => [0, roundUp(Math.max(0.005, top))] },
  busy: { color: "--busy", format: percent, range: () => [0, 1] },
};

class Chart {
  constructor(kind, element_, reading) {
    Object.assign(this, { kind, reading, element: element_, data: [[], []] });
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(element_);
  }

  // Its observer, and uPlot's listeners of the window, would keep it.
  remove() {
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  show(times, values) {
    this.data = [times, values];
    if (this.plot) this.plot.setData(this.data);
    else this.draw();
  }

  draw() {
    this.plot?.destroy();
    this.plot = null;
    const width = this.element.clientWidth;
    if (width > 0) this.plot = new uPlot(this.options(width), this.data, this.element);
  }

  resize() {
    const width = this.element.clientWidth;
    if (!this.plot) this.draw();
    else if (width > 0) this.plot.setSize({ width, height: HEIGHT });
  }

  options(width) {
    const { format, range, color: name } = KINDS[this.kind];
    const stroke = color(name);
    const axis = { stroke: color("--muted"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { sync: { key: "heddle" }, drag: { x: false, y: false } },
      scales: {
        // A minute at least, so that the first points have their place.
        x: { range: () => [Math.min(this.data[0][0], this.data[0].at(-1) - 60), this.data[0].at(-1)] },
        y: { range: (_, low, top) => range(top ?? 0) },
      },
      axes: [
        { ...axis, size: 28, space: 80, values: (_, marks) => marks.map(time) },
        // Both ends, whatever the height.
        { ...axis, size: 58, splits: ({ scales: { y } }) => [y.min, y.max], values: (_, marks) => marks.map(format) },
      ],
      series: [
        {},
        { stroke, fill: `color-mix(in srgb, ${stroke} 14%, transparent)`, width: 1.6, points: { show: false } },
      ],
      hooks: { setCursor: [(plot) => this.read(plot.cursor.idx)] },
    };
  }

  // Shows what is under the pointer.
  read(index) {
    const at = this.data[0][index];
    this.reading.textContent = at === undefined
      ? "" : `${KINDS[this.kind].format(this.data[1][index])} at ${time(at)}`;
  }
}

// How late the fibers ran that have been woken between two answers: the end of the last bucket that has got more.
function queued(before, now) {
  if (!now) return null;
  const grown = Object.entries(now.buckets).filter(([end, count]) => count > (before?.buckets[end] ?? 0));
  return Math.min(now.max, Math.max(0, ...grown.map(([end]) => Number(end))));
}

export class Card {
  constructor(isOpen) {
    this.clear();
    this.title = element("span");
    this.backend = element("span");
    this.figures = element("dl", { className: "figures" });
    const chart = (kind, title, text) => {
      const place = element("div", { className: "chart" });
      place.setAttribute("role", "img");
      place.setAttribute("aria-label", `${title} of the last minutes`);
      const reading = element("small");
      this[kind] = new Chart(kind, place, reading);
      return element("div", {}, element("h3", {}, `${title} `, element("small", {}, `${text} `), reading), place);
    };
    this.element = element("details", { className: "card", open: isOpen },
      element("summary", {}, this.title, this.backend), this.figures,
      element("div", { className: "charts" },
        chart("lag", "Lag", "how late fibers run, at most in a second"),
        chart("busy", "Busy", "not waiting in the kernel")));
  }

  clear() {
    this.times = [];
    this.values = { lag: [], busy: [] };
  }

  // It is not shown any more.
  remove() {
    for (const kind of ["lag", "busy"]) this[kind].remove();
  }

  // Takes an answer, from which `show` draws.
  add(at, scheduler) {
    const { stats } = scheduler;
    const { fibers } = stats;
    const before = this.last;
    const passed = before ? stats.elapsed - before.elapsed : 0;
    // The server keeps an answer for a second, and so may send it twice.
    if (before && passed === 0) return;
    const rate = (value, earlier) => (passed > 0 ? Math.max(0, (value - earlier) / passed) : null);
    // A clock that is set must not bend the lines: after it, they begin anew.
    const since = at - this.times.at(-1);
    if (since <= 0 || Math.abs(since - passed) > GAP) this.clear();
    if (this.times.length && at - this.times.at(-1) > GAP) this.push(this.times.at(-1) + 0.001, null, null);
    const lag = scheduler.lag ?? queued(before?.run_queue.scheduled_duration, stats.run_queue.scheduled_duration);
    const busy = before ? rate(stats.busy_duration, before.busy_duration) : null;
    this.push(at, lag, busy === null ? null : Math.min(1, busy));
    this.last = stats;
    this.heading = [scheduler.thread, scheduler.backend];
    const perSecond = (key) => (before
      ? [number(rate(stats.run_queue[key], before.run_queue[key])), "per s"] : ["–"]);
    this.now = {
      Lag: lag === null ? ["–", "needs stats: :detailed"] : [duration(lag)],
      Busy: [percent(this.values.busy.at(-1))],
      Fibers: [number(fibers.running + fibers.runnable + fibers.waiting), `${number(fibers.runnable)} runnable`],
      Switches: perSecond("switches_count"),
      Preemptions: perSecond("preemptions_count"),
      "I/O under way": [number(stats.operations.pending)],
      Timers: [number(stats.timers.pending)],
    };
  }

  push(at, lag, busy) {
    this.times = [...this.times, at].slice(-KEPT);
    this.values.lag = [...this.values.lag, lag].slice(-KEPT);
    this.values.busy = [...this.values.busy, busy].slice(-KEPT);
  }

  show() {
    const [thread, backend] = this.heading;
    this.title.textContent = thread;
    this.backend.textContent = backend;
    this.figures.replaceChildren(...Object.entries(this.now).map(([name, [value, unit]]) => {
      const small = unit ? element("small", {}, ` ${unit}`) : "";
      return element("div", {}, element("dt", {}, name), element("dd", {}, value, small));
    }));
    for (const kind of ["lag", "busy"]) this[kind].show(this.times, this.values[kind]);
  }

  // Again, in the colours of the scheme that the user has changed to.
  draw() {
    for (const kind of ["lag", "busy"]) this[kind].draw();
  }
}

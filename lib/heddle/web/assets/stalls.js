// The last stalls.

import { ask } from "./client.js";
import { byId, duration, element, number, time } from "./elements.js";
import { showFrames } from "./frames.js";
import { Rows } from "./rows.js";

const table = new Rows(byId("stalls"),
  ["Began at", "Kept its thread", "Where", "Thread", "Delayed fibers", "Number there"]);

function lateness({ ended, late_fibers: late, latest_by: by }) {
  if (!ended) return "–";
  return late ? `${number(late)}, by up to ${duration(by)}` : "0";
}

function place(stall) {
  return [
    [stall.native_method, stall.location].filter(Boolean).join(" called at ") || "at an unknown place",
    stall.called_from && `from ${stall.called_from}`,
  ].filter(Boolean).join(", ");
}

function item(stall) {
  return {
    key: String(stall.at),
    text: JSON.stringify(stall),
    label: () => [time(stall.at)],
    detail: (node) => showFrames(node, stall.fiber
      ? [{ text: stall.fiber, from: null }, ...stall.backtrace] : stall.backtrace),
    cells: [
      null,
      { text: stall.ended ? duration(stall.duration) : `${duration(stall.duration)} so far`, className: "number" },
      { text: place(stall), className: "mono" },
      { text: stall.thread },
      { text: lateness(stall), className: "number" },
      { text: number(stall.count), className: "number" },
    ],
  };
}

export async function refreshStalls(isShown) {
  const report = await ask("stalls.json");
  if (!isShown(report.pid)) return;
  table.show(report.stalls.map(item));
  byId("stalls-count").textContent = report.stalls.length ? `the last ${number(report.stalls.length)}` : "";
  byId("no-stalls").hidden = report.stalls.length > 0;
  byId("stalls-table").hidden = report.stalls.length === 0;
}

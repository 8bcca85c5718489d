// A backtrace: the program's own frames, and those of gems and of Ruby between them, folded.

import { count, element } from "./elements.js";

const NONE = "No Ruby code: it has not started, or is in Heddle itself.";
const LOADING = "Loading the backtrace…";

// -> [{ own, frames }], consecutive frames of one kind together. The innermost frame is where the fiber is, and so is
// never folded.
function groups(frames) {
  const found = [];
  frames.forEach((frame, index) => {
    const own = index === 0 || frame.from === null;
    if (found.at(-1)?.own === own) found.at(-1).frames.push(frame);
    else found.push({ own, frames: [frame] });
  });
  return found;
}

const lines = (frames) => element("pre", { tabIndex: 0 }, frames.map((frame) => frame.text).join("\n"));

function fold({ frames }, opened) {
  const names = [...new Set(frames.map((frame) => frame.from))];
  const label = `${count(frames.length, "frame")} of ${names.slice(0, 4).join(", ")}${names.length > 4 ? ", …" : ""}`;
  return element("details", { className: "fold", open: opened.has(label) },
    element("summary", {}, label), lines(frames));
}

// Shows a backtrace; undefined if it has not arrived. Folds stay as the user has left them.
export function showFrames(place, frames) {
  const text = JSON.stringify(frames ?? null);
  if (place.dataset.frames === text) return;
  place.dataset.frames = text;
  if (!frames?.length) {
    place.replaceChildren(element("p", { className: "hint" }, frames ? NONE : LOADING));
    return;
  }
  const opened = new Set([...place.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  place.replaceChildren(...groups(frames).map((group) => (group.own ? lines(group.frames) : fold(group, opened))));
}

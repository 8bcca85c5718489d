// Small helpers.

// An element with properties and children. Strings become text nodes.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// The same in SVG, with attributes.
export function drawing(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

// Puts the rows into an element in this order. A row that stays in its place keeps the focus.
export function fill(body, rows) {
  const wanted = new Set(rows);
  for (const row of [...body.childNodes]) if (!wanted.has(row)) row.remove();
  let next = body.firstChild;
  for (const row of rows) {
    if (row === next) next = next.nextSibling;
    else body.insertBefore(row, next);
  }
}

// 12345 -> "12,345", as the reader's language writes it
export const number = (value) => Math.round(value).toLocaleString();

// Few things per second need a decimal.
export const rate = (value) => (value > 0 && value < 10 ? value.toFixed(1) : number(value));

// 0.0012 -> "1.2 ms"
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds <= 0) return "0";
  if (seconds < 0.0001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.01) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 0.9995) return `${Math.round(seconds * 1e3)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

export const percent = (ratio) => (ratio === null || ratio === undefined ? "–" : `${Math.round(ratio * 100)}\u00a0%`);

// 1790000000 -> "14:13:20"
export const time = (seconds) => new Date(seconds * 1000).toLocaleTimeString([], { hour12: false });

// 1 -> "1 fiber", 2 -> "2 fibers"
export const count = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

// Small helpers.

// An element with properties and children. Strings become text nodes.
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// 12345 -> "12,345", as the reader's language writes it
export const number = (value) => Math.round(value).toLocaleString();

// 0.0012 -> "1.2 ms"
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds === 0) return "0";
  if (seconds < 0.0001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 0.01) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1e3)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.floor(seconds / 60)} min`;
  return `${Math.floor(seconds / 3600)} h`;
}

export const percent = (ratio) => (ratio === null || ratio === undefined ? "–" : `${Math.round(ratio * 100)} %`);

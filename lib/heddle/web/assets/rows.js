// A table's rows by key. Each has a button that shows details in a row of its own.

import { element, fill } from "./elements.js";

export class Rows {
  // `toggled(key, isOpen)` is called after a press of a button.
  constructor(body, headings, toggled = () => {}) {
    Object.assign(this, { body, headings, toggled, opened: new Set(), known: new Map(), groups: new Map() });
  }

  // `items`: { key, label(), cells, kind, detail(place) }, or { group }. A cell is { text, node, className }, or null for
  // the button's.
  show(items) {
    const before = this.known;
    const groups = this.groups;
    this.known = new Map();
    this.groups = new Map();
    fill(this.body, items.flatMap((item) => {
      if (item.group) {
        const row = groups.get(item.group) ?? this.wide("group", item.group);
        this.groups.set(item.group, row);
        return [row];
      }
      const parts = before.get(item.key) ?? this.make(item.key);
      this.known.set(item.key, parts);
      return this.update(parts, item);
    }));
    for (const key of this.opened) if (!this.known.has(key)) this.opened.delete(key);
  }

  make(key) {
    const button = element("button", { type: "button", className: "row" });
    const parts = { button, place: element("div", { className: "details" }), row: element("tr") };
    parts.detail = this.wide("detail", parts.place);
    button.addEventListener("click", () => {
      const isOpen = !this.opened.delete(key);
      if (isOpen) this.opened.add(key);
      // At once, and not with the next answer.
      this.unfold(parts, isOpen);
      this.toggled(key, isOpen);
    });
    return parts;
  }

  unfold(parts, isOpen) {
    parts.button.setAttribute("aria-expanded", isOpen);
    if (!isOpen) return parts.detail.remove();
    parts.item.detail(parts.place);
    return parts.row.after(parts.detail);
  }

  wide(className, content) {
    return element("tr", { className }, element("td", { colSpan: this.headings.length }, content));
  }

  update(parts, item) {
    const { row, button, detail, place } = parts;
    const isOpen = this.opened.has(item.key);
    parts.item = item;
    if (item.text !== parts.text) {
      parts.text = item.text;
      button.replaceChildren(...item.label());
      row.className = item.kind ?? "";
      fill(row, item.cells.map((cell, index) => {
        const first = cell === null;
        const made = first ? parts.first ??= element("td", {}, button) : this.cell(cell);
        // A narrow screen shows it before the value.
        made.dataset.heading = this.headings[index];
        return made;
      }));
      if (item.indent !== undefined) parts.first.style.paddingInlineStart = `${14 + item.indent * 18}px`;
    }
    button.setAttribute("aria-expanded", isOpen);
    if (isOpen) item.detail(place);
    return isOpen ? [row, detail] : [row];
  }

  cell({ className = "", node, text = "" }) {
    return element("td", { className }, node ?? text);
  }
}

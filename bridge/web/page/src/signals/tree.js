// The signals as a tree by the dots in their names, with their newest values; searched by parts of names.

import { el, write } from "../app/dom.js";
import { number, unitOf } from "../app/format.js";
import { DRAGGED } from "./plot.js";

export class Tree {
  #leaves = [];
  #written = 0;

  /** Calls `plot(name)` for Enter and double clicks, `choose(signal)` when one is selected. */
  constructor(node, { plot, choose }) {
    this.node = node;
    this.plot = plot;
    this.choose = choose;
    this.selected = null;
    this.search = el("input", { type: "search", placeholder: "Search signals", "aria-label": "Search signals", oninput: () => this.#filter() });
    this.count = el("small");
    this.list = el("div.tree", { role: "tree", "aria-label": "signals", onkeydown: (event) => this.#key(event) });
    this.element = el("div.tree-box", {}, el("div.search", {}, this.search, this.count), this.list);
    node.bus.on("hello", () => this.#grow());
    node.bus.on("status", ({ forced }) => {
      for (const { signal, row } of this.#leaves) row.classList.toggle("forced", forced.has(signal.name));
    });
  }

  #grow() {
    this.list.replaceChildren();
    this.#leaves = [];
    const groups = new Map([["", this.list]]);
    const group = (path) => {
      if (groups.has(path)) return groups.get(path);
      const dot = path.lastIndexOf(".");
      const details = el("details", { open: true }, el("summary", {}, path.slice(dot + 1)));
      group(dot < 0 ? "" : path.slice(0, dot)).append(details);
      groups.set(path, details);
      return details;
    };
    // A name that is also the beginning of others ("speed" beside "speed.limit") stays a leaf of its own.
    for (const signal of this.node.signals) {
      const dot = signal.name.lastIndexOf(".");
      const value = el("b.mono");
      const row = el("div.leaf", {
        role: "treeitem", tabIndex: -1, draggable: true, title: `${signal.name}, ${signal.group}${signal.doc ? `: ${signal.doc}` : ""}`,
        onfocus: () => this.#select(row, signal),
        ondblclick: () => this.plot(signal.name),
        ondragstart: (event) => {
          event.dataTransfer.setData(DRAGGED, signal.name);
          event.dataTransfer.effectAllowed = "copy";
        },
      }, el(`i.kind.${signal.group}`), el("span", {}, signal.name.slice(dot + 1)), value, el("small", {}, unitOf(signal)));
      row.dataset.signal = signal.name;
      group(dot < 0 ? "" : signal.name.slice(0, dot)).append(row);
      this.#leaves.push({ signal, row, value, words: signal.name.toLowerCase() });
    }
    if (this.#leaves.length) this.#leaves[0].row.tabIndex = 0;
    this.#filter();
  }

  #select(row, signal) {
    for (const leaf of this.#leaves) {
      leaf.row.tabIndex = leaf.row === row ? 0 : -1;
      leaf.row.classList.toggle("selected", leaf.row === row);
    }
    this.selected = signal;
    this.choose(signal);
  }

  #filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, words: name } of this.#leaves) {
      row.hidden = !words.every((word) => name.includes(word));
      shown += !row.hidden;
    }
    for (const details of [...this.list.querySelectorAll("details")].reverse()) {
      details.hidden = ![...details.children].some((child) => child.tagName !== "SUMMARY" && !child.hidden);
      if (words.length) details.open = true;
    }
    write(this.count, `${shown} of ${this.#leaves.length}`);
  }

  #key(event) {
    const rows = this.#leaves.map(({ row }) => row).filter((row) => row.checkVisibility());
    const at = rows.indexOf(document.activeElement);
    if (at < 0) return;
    if (event.key === "ArrowDown") rows[at + 1]?.focus();
    else if (event.key === "ArrowUp") rows[at - 1]?.focus();
    else if (event.key === "Enter") this.plot(rows[at].dataset.signal);
    else return;
    event.preventDefault();
  }

  update(now) {
    if (now - this.#written < 200) return;
    this.#written = now;
    for (const { signal, value, row } of this.#leaves) if (!row.hidden) write(value, number(this.node.value(signal.name)));
  }
}

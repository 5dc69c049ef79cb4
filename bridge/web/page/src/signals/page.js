// Signals: the tree on the left, plots in the middle, parameters on the right.

import { el, write } from "../app/dom.js";
import { ForceBox } from "./force.js";
import { Parameters } from "./parameters.js";
import { Plot } from "./plot.js";
import { Table } from "./table.js";
import { Tree } from "./tree.js";

const WINDOWS = [2, 5, 10, 30, 60, 120]; // [s]
const REDRAW = 66; // [ms]

/** What a page that was just opened shows: angles above, forces or pressures below. */
const FIRST = [/(angle|position|stroke)$/i, /(force|pressure|load|torque)/i];

export class SignalsPage {
  path = "/signals";
  title = "Signals";

  #drawn = 0;
  #held = null; // [s] end of the window while paused

  constructor(node, toasts) {
    this.node = node;
    this.table = new Table();
    this.plots = [];
    this.chosen = null;
    const plot = (name) => (this.chosen ?? this.plots[0] ?? this.#add()).add(name);
    this.force = new ForceBox(node, toasts, plot);
    this.tree = new Tree(node, { plot, choose: (signal) => this.force.choose(signal) });
    this.parameters = new Parameters(node);
    this.window = el("select", { "aria-label": "time window", onchange: () => (this.#drawn = 0) }, WINDOWS.map((s) => el("option", { value: s, selected: s === 10 }, `${s} s`)));
    this.pause = el("button", { "aria-pressed": "false", onclick: () => this.#hold(), title: "Stand still and look; samples are taken on" }, "Pause");
    this.rate = el("small");
    this.stack = el("div.stack");
    this.element = el("section.signals", {},
      el("aside.panel", { "aria-label": "signals" }, this.tree.element, this.force.element),
      el("div.middle", {},
        el("div.toolbar", { role: "toolbar", "aria-label": "plots" },
          el("button", { onclick: () => this.#add() }, "+ Plot"), this.window, this.pause,
          el("button.csv", { onclick: () => this.#export(), title: "All samples in the window, with their times" }, "Export CSV"), this.rate),
        this.stack),
      el("aside.panel", { "aria-label": "parameters" }, this.parameters.element));
    node.bus.on("hello", () => this.#begin());
    node.bus.on("state", (state) => this.table.take(state));
  }

  #begin() {
    this.table.clear();
    this.#held = null;
    if (!this.plots.length) {
      for (const pattern of FIRST) {
        const names = this.node.signals.filter(({ name, group }) => group === "output" && pattern.test(name)).slice(0, 3);
        const plot = this.#add();
        for (const { name } of names) plot.add(name);
      }
      this.chosen = null;
    }
    for (const plot of this.plots) plot.keep(this.node.index);
    this.#watch();
  }

  #add() {
    const plot = new Plot(this.node, {
      changed: () => this.#watch(),
      closed: () => {
        this.plots = this.plots.filter((other) => other !== plot);
        if (this.chosen === plot) this.chosen = null;
        plot.element.remove();
        this.#watch();
      },
      chosen: () => {
        this.chosen = plot;
        for (const other of this.plots) other.element.classList.toggle("chosen", other === plot);
      },
    });
    this.plots.push(plot);
    this.stack.append(plot.element);
    return plot;
  }

  /** Ask for every sample of what is plotted, and of nothing else. */
  #watch() {
    const names = [...new Set(this.plots.flatMap(({ names: own }) => own))];
    this.node.watch(names);
    const hertz = names.length > 16 ? 250 : names.length > 8 ? 500 : 1000;
    write(this.rate, names.length ? `${names.length} signals, up to ${hertz} samples a second each` : "");
  }

  #hold() {
    this.#held = this.#held === null ? this.table.newest : null;
    this.pause.setAttribute("aria-pressed", this.#held !== null);
  }

  get #range() {
    const to = this.#held ?? this.table.newest;
    return Number.isFinite(to) ? [to - Number(this.window.value), to] : [0, 1];
  }

  #export() {
    const names = [...new Set(this.plots.flatMap(({ names: own }) => own))];
    const link = el("a", {
      href: URL.createObjectURL(new Blob([this.table.csv(names, ...this.#range)], { type: "text/csv" })),
      download: `${this.node.hello?.node ?? "hilnode"}-${this.#range[1].toFixed(1)}s.csv`,
    });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  show() {
    this.#drawn = 0;
  }

  update(now) {
    this.tree.update(now);
    if (now - this.#drawn < REDRAW) return;
    this.#drawn = now;
    const [from, to] = this.#range;
    for (const plot of this.plots) plot.draw(this.table, from, to);
  }
}

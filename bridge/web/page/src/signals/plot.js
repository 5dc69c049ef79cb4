// One plot: lines of a few signals over simulated time. A cursor runs through all plots together; a click pins a
// moment, and the differences to it are shown.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { el, write } from "../app/dom.js";
import { number, unitOf } from "../app/format.js";

const COLOURS = ["#f2b02e", "#58c7f3", "#35c98b", "#ff7d5c", "#d98cc0", "#f0e442", "#8fa8ff", "#b7c2cc"];
const AXIS = { stroke: "#8f9ca9", grid: { stroke: "#232b34", width: 1 }, ticks: { stroke: "#2a333d", width: 1 }, font: "11px system-ui" };
export const DRAGGED = "application/x-hilnode-signal";

export class Plot {
  #chart = null;
  #pinned = null; // [s]
  #drawn = [[]];
  #range = [0, 1];

  /** Calls `changed()` when its signals are others, `closed()` to be taken away, `chosen()` when it is clicked. */
  constructor(node, { changed, closed, chosen }) {
    this.node = node;
    this.changed = changed;
    this.names = [];
    this.legend = el("div.legend");
    this.canvas = el("div.chart");
    this.empty = el("p.empty.dim", {}, "Drag a signal here, or choose one in the tree and press Enter.");
    this.element = el("article.plot.panel", {
      tabIndex: 0,
      "aria-label": "plot",
      onfocusin: chosen,
      onpointerdown: chosen,
      ondragover: (event) => {
        if (!event.dataTransfer.types.includes(DRAGGED)) return;
        event.preventDefault();
        this.element.classList.add("over");
      },
      ondragleave: () => this.element.classList.remove("over"),
      ondrop: (event) => {
        event.preventDefault();
        this.element.classList.remove("over");
        this.add(event.dataTransfer.getData(DRAGGED));
      },
    },
      el("header", {}, this.legend, el("button.quiet", { title: "Take this plot away", "aria-label": "Take this plot away", onclick: closed }, "✕")),
      this.canvas, this.empty);
    new ResizeObserver(() => this.#fit()).observe(this.canvas);
  }

  add(name) {
    if (!name || this.names.includes(name) || !this.node.index.has(name)) return;
    this.names.push(name);
    this.rebuild();
    this.changed();
  }

  remove(name) {
    this.names = this.names.filter((other) => other !== name);
    this.rebuild();
    this.changed();
  }

  /** Signals of another node: those that it does not have are let go. */
  keep(known) {
    this.names = this.names.filter((name) => known.has(name));
    this.rebuild();
  }

  rebuild() {
    this.#chart?.destroy();
    this.#chart = null;
    this.empty.hidden = this.names.length > 0;
    this.#list();
    if (!this.names.length) return;
    const options = {
      width: Math.max(100, this.canvas.clientWidth),
      height: Math.max(60, this.canvas.clientHeight),
      legend: { show: false },
      cursor: { sync: { key: "time" }, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: () => this.#range } },
      axes: [
        { ...AXIS, size: 28, values: (_, splits) => splits.map((s) => `${+s.toFixed(3)} s`) },
        { ...AXIS, size: 62, values: (_, splits) => splits.map(short) },
      ],
      series: [{}, ...this.names.map((name, k) => ({ label: name, stroke: colour(k), width: 1.5, points: { show: false } }))],
      hooks: { setCursor: [() => this.#read()], draw: [(chart) => this.#mark(chart)] },
    };
    this.#chart = new uPlot(options, this.#drawn.length === this.names.length + 1 ? this.#drawn : [[], ...this.names.map(() => [])], this.canvas);
    this.#chart.over.addEventListener("click", () => this.#pin());
  }

  #list() {
    this.values = this.names.map((_, k) => {
      const value = el("b.mono");
      value.style.color = colour(k);
      return value;
    });
    this.legend.replaceChildren(...this.names.map((name, k) =>
      el("span.entry", { title: name }, el("span", {}, name), this.values[k], el("small", {}, unitOf(this.node.signals[this.node.index.get(name)] ?? {})),
        el("button.quiet", { title: `Take ${name} away`, "aria-label": `Take ${name} away`, onclick: () => this.remove(name) }, "✕"))));
  }

  #fit() {
    if (this.canvas.clientWidth && this.canvas.clientHeight) this.#chart?.setSize({ width: this.canvas.clientWidth, height: this.canvas.clientHeight });
  }

  /** Show `from` to `to` [s] of the table. */
  draw(table, from, to) {
    if (!this.#chart) return;
    this.#range = [from, to];
    this.#drawn = table.cut(this.names, from, to, this.canvas.clientWidth || 600);
    this.#chart.setData(this.#drawn);
    this.#read();
  }

  /** Numbers in the legend: at the cursor, or the newest; with a pinned moment the difference to it. */
  #read() {
    const index = this.#chart?.cursor.idx;
    const pinned = this.#pinned === null ? -1 : this.#drawn[0].findIndex((time) => time >= this.#pinned);
    this.names.forEach((name, k) => {
      const column = this.#drawn[k + 1] ?? [];
      const value = index === null || index === undefined ? this.node.value(name) : column[index];
      let text = number(value);
      if (pinned >= 0 && Number.isFinite(value)) text += `  Δ ${number(value - column[pinned])}`;
      write(this.values[k], text);
    });
  }

  #pin() {
    const { idx } = this.#chart.cursor;
    this.#pinned = this.#pinned === null && idx !== null ? this.#drawn[0][idx] : null;
    this.#chart.redraw();
    this.#read();
  }

  #mark({ ctx, bbox, valToPos }) {
    if (this.#pinned === null || this.#pinned < this.#range[0]) return;
    const x = Math.round(valToPos.call(this.#chart, this.#pinned, "x", true));
    ctx.save();
    ctx.strokeStyle = "#e1e8ee";
    ctx.setLineDash([4, 4]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  }
}

const colour = (k) => COLOURS[k % COLOURS.length];

/** Numbers at an axis: thousands and millions are shortened, so that all have room. */
function short(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)} G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)} M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)} k`;
  return `${+value.toPrecision(4)}`;
}

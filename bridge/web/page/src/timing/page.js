// Timing: how late the ticks woke, what they cost, how that went over the last minutes, and every overrun.

import uPlot from "uplot";
import { el, write } from "../app/dom.js";
import { microseconds } from "../app/format.js";
import { Budget } from "./budget.js";
import { Histogram } from "./histogram.js";

const KEPT = 600; // seconds of history
const MOST = 100; // overruns in the list
const AXIS = { stroke: "#8f9ca9", grid: { stroke: "#232b34", width: 1 }, ticks: { show: false }, font: "11px system-ui" };
const LINES = [["wake p99", "#58c7f3"], ["wake max", "#2d6f8c"], ["step p99", "#f2b02e"], ["step max", "#8c6618"]];

export class TimingPage {
  path = "/timing";
  title = "Timing";

  #history = [[], ...LINES.map(() => [])];
  #chart = null;
  #second = 0;

  /** From the histogram, whose classes are wider than what is known of the worst. */
  #quantile(x) {
    return Math.min(this.histogram.quantile(x), this.count.worst);
  }

  constructor(node) {
    this.node = node;
    this.histogram = new Histogram();
    this.budget = new Budget();
    this.figures = Object.fromEntries(["ticks", "p50", "p99", "p99.99", "worst", "overruns", "lost rows"].map((name) => [name, el("b.mono", {}, "–")]));
    this.overruns = el("div.list");
    this.chart = el("div.chart");
    this.count = { ticks: 0, overruns: 0, lost: 0, worst: 0 };
    const panel = (name, title, ...parts) => el(`article.panel.${name}`, {}, el("h2", {}, title), ...parts);
    this.element = el("section.timing", {},
      panel("wake", "Wake latency", el("div.figures", {}, Object.entries(this.figures).map(([name, value]) => el("span", {}, el("small", {}, name), value))), this.histogram.element),
      panel("stages", "Budget of a tick, last second", this.budget.element),
      panel("history", "The last ten minutes", el("div.legend", {}, LINES.map(([name, colour]) => {
        const dot = el("i.kind");
        dot.style.background = colour;
        return el("span.entry", {}, dot, name);
      })), this.chart),
      panel("overruns", "Overruns", this.overruns));
    new ResizeObserver(() => this.#fit()).observe(this.chart);
    node.bus.on("hello", (hello) => this.#begin(hello));
    node.bus.on("timing", (message) => this.#take(message));
    node.bus.on("event", (event) => {
      if (event.event === "overrun") this.#overrun(event);
      else if (event.event === "blackbox") this.#explain(event);
    });
  }

  #begin({ timing }) {
    this.histogram.begin(timing?.edges_us ?? []);
    this.budget.worst = {};
    this.count = { ticks: 0, overruns: 0, lost: 0, worst: 0 };
    this.#history = [[], ...LINES.map(() => [])];
    this.overruns.replaceChildren(el("p.empty.dim", {}, "None since this page was opened."));
  }

  #take(message) {
    const { rows = 0, lost = 0, overruns = 0, wake_us: wake, step_us: step, wake_counts: counts } = message;
    this.histogram.take(counts ?? []);
    this.budget.take(message, this.node.hello.dt * 1e6);
    this.count.ticks += rows;
    this.count.overruns += overruns;
    this.count.lost = lost;
    this.count.worst = Math.max(this.count.worst, wake?.max ?? 0);
    const texts = {
      ticks: this.count.ticks.toLocaleString("en"),
      ...Object.fromEntries([["p50", 0.5], ["p99", 0.99], ["p99.99", 0.9999]].map(([name, x]) => [name, microseconds(this.#quantile(x))])),
      worst: microseconds(this.count.worst),
      overruns: `${this.count.overruns}`,
      "lost rows": `${this.count.lost}`,
    };
    for (const [name, text] of Object.entries(texts)) write(this.figures[name], text);
    this.figures.overruns.classList.toggle("bad", this.count.overruns > 0);
    const values = [this.#second++, wake?.p99, wake?.max, step?.p99, step?.max];
    values.forEach((value, k) => {
      this.#history[k].push(k && !(value > 0) ? null : value);
      if (this.#history[k].length > KEPT) this.#history[k].shift();
    });
    this.#chart?.setData(this.#history);
  }

  #overrun({ tick, what }) {
    if (this.overruns.firstChild?.classList.contains("empty")) this.overruns.replaceChildren();
    const line = el("p", {}, el("span.mono.dim", {}, `tick ${tick}`), ` ${what}`);
    line.dataset.tick = tick;
    this.overruns.prepend(line);
    while (this.overruns.children.length > MOST) this.overruns.lastChild.remove();
  }

  /** The black box of an overrun that is in the list: its cause, and the ticks around it on demand. */
  #explain({ tick, what, index, black_box: { columns, rows } }) {
    let line = this.overruns.querySelector(`[data-tick="${tick}"]`);
    if (!line) {
      this.#overrun({ tick, what: "overrun" });
      line = this.overruns.firstChild;
    }
    const cell = (value) => el("td.mono", {}, typeof value === "number" ? `${+value.toFixed(1)}` : Array.isArray(value) ? value.join(" ") : `${value}`);
    const table = el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", {}, name.replace(/_us$/, " [µs]"))))),
      el("tbody", {}, rows.map((row) => el(row[0] === tick ? "tr.here" : "tr", {}, row.map(cell)))));
    const more = index > 1 ? ` (${index} overruns within half a second)` : "";
    const box = el("details.box", {}, el("summary", {}, [...line.childNodes], el("p.cause", {}, `${what}${more}`)), table);
    box.dataset.tick = tick;
    line.replaceWith(box);
  }

  #fit() {
    const [width, height] = [this.chart.clientWidth, this.chart.clientHeight];
    if (!width || !height) return;
    if (this.#chart) this.#chart.setSize({ width, height });
    else this.#chart = new uPlot({
      width, height,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: (_, low, high) => [Math.min(low, high - 60), high] }, y: { distr: 3 } },
      axes: [{ ...AXIS, size: 26, splits: (_, __, low, high, step) => backFrom(high, low, step), values: (_, splits) => splits.map((s) => `${s - this.#second + 1} s`) }, { ...AXIS, size: 58, values: (_, splits) => splits.map((us) => (us ? microseconds(us).replace(/\.0+ /, " ") : "")) }],
      series: [{}, ...LINES.map(([label, stroke]) => ({ label, stroke, width: 1.5, points: { show: false } }))],
    }, this.#history, this.chart);
  }

  show() {
    this.#fit();
  }
}

/** Marks at whole steps before now, the last second on the right. */
const backFrom = (now, first, step) => Array.from({ length: Math.floor((now - first) / step) + 1 }, (_, k) => now - k * step).reverse();

// Ticks by wake latency, both axes logarithmic: a single late tick among a million is seen as well as the crowd.

import { svg } from "../app/dom.js";
import { microseconds } from "../app/format.js";

const [WIDE, HIGH, LEFT, RIGHT, BOTTOM] = [640, 250, 46, 24, 26];

export class Histogram {
  #edges = [];
  #bars = [];
  #recent = [];
  total = [];

  constructor() {
    this.element = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH}`, class: "histogram", role: "img", "aria-label": "ticks by wake latency" });
  }

  /** `edges` [us] between the buckets: the first bucket is below the first edge, the last above the last. */
  begin(edges) {
    this.#edges = edges;
    this.total = new Array(edges.length + 1).fill(0);
    this.element.replaceChildren();
    const places = this.total.length;
    this.step = (WIDE - LEFT - RIGHT) / places;
    for (let decade = 1; decade <= 1e5; decade *= 10) {
      const k = edges.findIndex((edge) => edge >= 0.99 * decade);
      if (k < 0) continue;
      const x = LEFT + (k + 1) * this.step;
      this.element.append(svg("line", { x1: x, x2: x, y1: 6, y2: HIGH - BOTTOM, class: "rule" }), this.#text(microseconds(decade).replace(/\.0+ /, " "), x, HIGH - 8, "middle"));
    }
    this.axis = svg("g");
    this.element.append(this.axis);
    const bar = (name) => this.total.map((_, k) => {
      const rectangle = svg("rect", { x: LEFT + k * this.step + 1, width: this.step - 2, class: name }, svg("title"));
      this.element.append(rectangle);
      return rectangle;
    });
    this.#bars = bar("all");
    this.#recent = bar("recent");
  }

  #text(text, x, y, anchor) {
    return svg("text", { x, y, "text-anchor": anchor }, text);
  }

  /** Counts of one more second. */
  take(counts) {
    if (counts.length !== this.total.length) return;
    counts.forEach((count, k) => (this.total[k] += count));
    const most = Math.max(10, ...this.total);
    const decades = Math.ceil(Math.log10(most) + 0.1);
    const height = (count) => (count > 0 ? ((Math.log10(count) + 0.3) / (decades + 0.3)) * (HIGH - BOTTOM - 10) : 0);
    this.axis.replaceChildren();
    for (let d = 0; d <= decades; d += decades > 5 ? 2 : 1) {
      const y = HIGH - BOTTOM - height(10 ** d);
      this.axis.append(svg("line", { x1: LEFT, x2: WIDE - RIGHT, y1: y, y2: y, class: "rule" }), this.#text(label(10 ** d), LEFT - 6, y + 4, "end"));
    }
    const draw = (bars, values, when) => bars.forEach((rectangle, k) => {
      const h = height(values[k]);
      rectangle.setAttribute("height", h);
      rectangle.setAttribute("y", HIGH - BOTTOM - h);
      rectangle.firstChild.textContent = `${this.#range(k)}: ${values[k]} ticks ${when}`;
    });
    draw(this.#bars, this.total, "since this page was opened");
    draw(this.#recent, counts, "in the last second");
  }

  #range(k) {
    const [low, high] = [this.#edges[k - 1], this.#edges[k]];
    if (low === undefined) return `below ${microseconds(high)}`;
    return high === undefined ? `above ${microseconds(low)}` : `${microseconds(low)} to ${microseconds(high)}`;
  }

  /** The latency [us] that a share of all ticks stayed below, to within a bucket. */
  quantile(share) {
    const all = this.total.reduce((sum, count) => sum + count, 0);
    let seen = 0;
    for (let k = 0; k < this.total.length; k++) {
      seen += this.total[k];
      if (all && seen >= share * all) return this.#edges[Math.min(k, this.#edges.length - 1)];
    }
    return NaN;
  }
}

const label = (count) => (count >= 1e6 ? `${count / 1e6} M` : count >= 1e3 ? `${count / 1e3} k` : `${count}`);

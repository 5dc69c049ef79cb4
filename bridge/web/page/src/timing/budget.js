// The tick's budget: how much of its period goes to waking late, to inputs, plant and outputs, and what is free.

import { el, write } from "../app/dom.js";
import { microseconds } from "../app/format.js";

const PARTS = { wake_us: "wake", before_us: "inputs", step_us: "plant", after_us: "outputs" };
const COLOURS = { wake_us: "var(--blue)", before_us: "var(--green)", step_us: "var(--amber)", after_us: "#d98cc0" };

export class Budget {
  constructor() {
    this.bars = el("div.bars");
    this.table = el("tbody");
    this.rest = el("p.dim");
    this.element = el("div.budget", {}, this.bars, this.rest,
      el("table", {}, el("thead", {}, el("tr", {}, ["stage", "p50", "p99", "max", "worst here"].map((text) => el("th", {}, text)))), this.table));
    this.worst = {};
  }

  /** Anything in the message that has p50, p99 and max is a stage; those of later versions as well. */
  take(message, period) {
    const stages = Object.entries(message).filter(([, value]) => value !== null && typeof value === "object" && "p99" in value);
    const row = (share, key, name) => {
      const bar = el(`span.${name}`);
      bar.style.width = `${Math.min(100, 100 * share)}%`;
      bar.style.background = COLOURS[key] ?? "var(--dim)";
      return bar;
    };
    this.bars.replaceChildren(...["p50", "p99", "max"].map((which) =>
      el("div.bar-row", {}, el("small", {}, which), el("div.track", {}, stages.map(([key, value]) => row(value[which] / period, key, which))))));
    this.table.replaceChildren(...stages.map(([key, { p50, p99, max }]) => {
      this.worst[key] = Math.max(this.worst[key] ?? 0, max);
      const dot = el("i.kind");
      dot.style.background = COLOURS[key] ?? "var(--dim)";
      return el("tr", {}, el("td", {}, dot, ` ${PARTS[key] ?? key.replace(/_us$/, "")}`), [p50, p99, max, this.worst[key]].map((us) => el("td.mono", {}, microseconds(us))));
    }));
    const used = stages.reduce((sum, [, { p99 }]) => sum + p99, 0);
    this.table.append(el("tr.free", {}, el("td", {}, el("i.kind.none"), " free"), ["p50", "p99", "max"].map((which) => {
      const left = period - stages.reduce((sum, [, value]) => sum + value[which], 0);
      return el("td.mono", {}, left > 0 ? microseconds(left) : "none");
    }), el("td")));
    write(this.rest, `${microseconds(used)} of ${microseconds(period)} at p99: ${Math.max(0, 100 - (100 * used) / period).toFixed(0)} % to spare`);
  }
}

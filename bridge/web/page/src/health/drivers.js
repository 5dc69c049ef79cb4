// A card for each driver: how its device is doing.

import { el, enable, write } from "../app/dom.js";
import { microseconds, milliseconds } from "../app/format.js";

export class DriverCards {
  #cards = new Map();

  constructor(node, toasts) {
    this.node = node;
    this.toasts = toasts;
    this.element = el("div.drivers");
    node.bus.on("hello", () => {
      this.#cards.clear();
      this.element.replaceChildren();
    });
    node.bus.on("driver", ({ drivers }) => {
      for (const [name, health] of Object.entries(drivers ?? {})) this.#take(name, health);
    });
  }

  #take(name, health) {
    if (!this.#cards.has(name)) this.#cards.set(name, this.#card(name, health));
    const { element, state, values, trouble, swap } = this.#cards.get(name);
    element.dataset.state = health.state;
    write(state, health.twin ? `${health.state}, twin` : health.state);
    write(values.age, health.age_s === null ? "never" : milliseconds(health.age_s));
    write(values.period, `${microseconds(health.period_p50_us)} / ${microseconds(health.period_p99_us)}`);
    write(values.frames, `${health.frames} / ${health.writes}`);
    write(values.errors, `${health.errors} / ${health.reconnects}`);
    write(trouble, health.trouble ?? "");
    write(swap, health.twin ? "Put the device in" : "Put the twin in");
    swap.dataset.to = health.twin ? "real" : "twin";
    enable(swap, this.node.denied("admin"));
  }

  #card(name, { kind }) {
    const values = Object.fromEntries(["age", "period", "frames", "errors"].map((key) => [key, el("dd.mono")]));
    const labels = { age: "last frame", period: "period p50 / p99", frames: "frames / writes", errors: "errors / reconnects" };
    const state = el("span.chip");
    const trouble = el("p.trouble");
    const swap = el("button.small", { onclick: () => this.toasts.attempt(this.node.ask("swap", { driver: name, to: swap.dataset.to })) });
    const element = el("article.driver.panel", {},
      el("header", {}, el("h2", {}, name, " ", el("small", {}, kind)), state),
      el("dl.readings", {}, Object.entries(values).map(([key, value]) => [el("dt", {}, labels[key]), value])), trouble, swap);
    this.element.append(element);
    return { element, state, values, trouble, swap };
  }
}

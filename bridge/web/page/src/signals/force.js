// The chosen signal: its limits, and imposing a value on it until it is given back.

import { el, enable, write } from "../app/dom.js";
import { number } from "../app/format.js";

export class ForceBox {
  #signal = null;

  constructor(node, toasts, plot) {
    this.node = node;
    this.toasts = toasts;
    this.name = el("h2", {}, "no signal chosen");
    this.about = el("p.dim");
    this.value = el("input", { type: "number", step: "any", "aria-label": "value to impose" });
    this.force = el("button.primary", { "data-title": "Impose this value on the signal until it is released" }, "Force");
    this.release = el("button", { type: "button", onclick: () => this.#ask("release", { name: this.#signal.name }) }, "Release");
    this.all = el("button.quiet", { type: "button", onclick: () => this.#ask("release") }, "Release all");
    this.plot = el("button", { type: "button", onclick: () => plot(this.#signal.name) }, "Plot");
    this.why = el("p.refusal", { role: "alert" });
    this.element = el("form.force", {
      onsubmit: (event) => {
        event.preventDefault();
        if (this.value.value !== "") this.#ask("force", { name: this.#signal.name, value: Number(this.value.value) });
      },
    }, this.name, this.about, el("div.row", {}, this.value, this.force, this.release, this.plot), this.why, this.all);
    node.bus.on("status", () => this.#adapt());
    node.bus.on("link", () => this.#adapt());
    this.#adapt();
  }

  choose(signal) {
    this.#signal = signal;
    write(this.name, signal.name);
    const { low, high, unit } = signal;
    const range = low === null && high === null ? "no limits" : `${number(low ?? -Infinity)} to ${number(high ?? Infinity)}`;
    write(this.about, `${signal.group} · ${range} ${unit ?? ""}`);
    write(this.why, "");
    this.value.value = "";
    this.#adapt();
  }

  async #ask(op, fields = {}) {
    try {
      await this.node.ask(op, fields);
      write(this.why, "");
    } catch (error) {
      write(this.why, error.message);
    }
    this.node.refresh();
  }

  #adapt() {
    const denied = this.node.denied();
    const none = this.#signal ? "" : "choose a signal in the tree";
    const { forced } = this.node.status;
    const held = this.#signal && forced.has(this.#signal.name);
    for (const part of [this.value, this.force]) enable(part, denied || none);
    enable(this.release, denied || none || (held ? "" : "it is not forced"));
    enable(this.plot, none);
    this.all.hidden = forced.size === 0;
    enable(this.all, denied);
    write(this.all, `Release all (${forced.size})`);
  }
}

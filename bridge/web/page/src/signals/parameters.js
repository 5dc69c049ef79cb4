// Parameters of the plant: a slider where both limits are known, a number always; what the node refuses is said under it.

import { el, enable, write } from "../app/dom.js";
import { number } from "../app/format.js";

export class Parameters {
  #rows = [];

  constructor(node) {
    this.node = node;
    this.search = el("input", { type: "search", placeholder: "Search parameters", "aria-label": "Search parameters", oninput: () => this.#filter() });
    this.list = el("div.parameters");
    this.element = el("div.parameter-box", {}, el("div.search", {}, this.search), this.list);
    node.bus.on("hello", () => this.#build());
    node.bus.on("link", () => this.#adapt());
    node.bus.on("status", ({ parameters }) => {
      for (const row of this.#rows) if (parameters[row.name] !== undefined) row.take(parameters[row.name]);
    });
  }

  #build() {
    this.#rows = this.node.parameters.map((parameter) => this.#row(parameter));
    this.list.replaceChildren(...this.#rows.map(({ element }) => element));
    if (!this.#rows.length) this.list.append(el("p.empty.dim", {}, "This plant has no parameters that can be changed while it runs."));
    this.#adapt();
  }

  #row({ name, unit, value, low, high, doc }) {
    const bounded = Number.isFinite(low) && Number.isFinite(high);
    const why = el("p.refusal", { role: "alert" });
    const box = el("input", { type: "number", step: "any", value, "aria-label": name });
    const slider = bounded ? el("input", { type: "range", min: low, max: high, step: (high - low) / 500, value, "aria-label": `${name}, slider` }) : null;
    let known = value;
    const show = (given) => {
      box.value = `${+Number(given).toPrecision(6)}`;
      if (slider) slider.value = given;
    };
    const set = async (wanted) => {
      try {
        await this.node.ask("set", { name, value: wanted });
        known = wanted;
        write(why, "");
      } catch (error) {
        write(why, error.message);
      }
      show(known);
    };
    box.addEventListener("change", () => box.value !== "" && set(Number(box.value)));
    slider?.addEventListener("input", () => (box.value = `${+Number(slider.value).toPrecision(6)}`));
    slider?.addEventListener("change", () => set(Number(slider.value)));
    const limits = bounded ? `${number(low)} to ${number(high)}` : "";
    const element = el("div.parameter", { title: doc ?? "" },
      el("div.head", {}, el("span", {}, name), box, el("small", {}, unit ?? "")), slider,
      el("small.limits", {}, [doc, limits].filter(Boolean).join(" · ")), why);
    const take = (given) => {
      known = given;
      if (!element.contains(document.activeElement)) show(given);
    };
    return { name, element, inputs: [box, slider].filter(Boolean), take };
  }

  #adapt() {
    const why = this.node.hello?.replay ? "a recording has no plant" : this.node.denied();
    for (const { inputs } of this.#rows) for (const input of inputs) enable(input, why);
  }

  #filter() {
    const text = this.search.value.toLowerCase();
    for (const { name, element } of this.#rows) element.hidden = !name.toLowerCase().includes(text);
  }
}

// What has happened: the log of events with a filter, and the alarms that are on now.

import { el, write } from "../app/dom.js";
import { number } from "../app/format.js";

const MOST = 500;
const LEVELS = { trip: "bad", overrun: "bad", alarm: "bad", halt: "bad", invalid: "bad", blackbox: "bad", stale: "warn", state: "", fresh: "" };

/** Alarms that are on, by their number; also used by the operator's panel. */
export class Alarms {
  constructor(bus) {
    this.on = new Map();
    bus.on("hello", () => this.on.clear());
    bus.on("event", ({ event, index, what }) => {
      if (event === "alarm") this.on.set(index, what);
      else if (event === "alarm_over") this.on.delete(index);
      else return;
      bus.tell("alarms", this.on);
    });
    bus.on("status", ({ alarms }) => Array.isArray(alarms) && this.#settle(bus, alarms));
  }

  /** All that are on, as the node says once a second: who has just come, or was not told, knows then. */
  #settle(bus, alarms) {
    if (alarms.length === this.on.size && alarms.every(({ index }) => this.on.has(index))) return;
    const known = this.on;
    this.on = new Map(alarms.map(({ index, name, value }) => [index, known.get(index) ?? `alarm ${name}: value ${number(value)}`]));
    bus.tell("alarms", this.on);
  }
}

export class EventLog {
  #hidden = new Set();
  #kinds = new Map();

  constructor(node) {
    this.node = node;
    this.text = el("input", { type: "search", placeholder: "Filter", "aria-label": "Filter events", oninput: () => this.#filter() });
    this.kinds = el("span.toggles");
    this.list = el("div.log", { role: "log", tabIndex: 0, "aria-label": "events" });
    this.element = el("article.panel", {}, el("div.log-head", {}, el("h2", {}, "Events"), this.text, this.kinds), this.list);
    node.bus.on("hello", () => this.list.replaceChildren());
    node.bus.on("event", (event) => this.#take(event));
  }

  #take({ tick, event, what }) {
    if (!this.#kinds.has(event)) this.#offer(event);
    const time = (tick * (this.node.hello?.dt ?? 0.001)).toFixed(3);
    const line = el("div", {}, el("span.mono.dim", { title: `tick ${tick}` }, `${time} s`), el("span.kind-name", {}, event), el("span.what", {}, what));
    line.dataset.level = LEVELS[event] ?? "";
    line.dataset.kind = event;
    line.hidden = !this.#wanted(line);
    this.list.prepend(line);
    while (this.list.children.length > MOST) this.list.lastChild.remove();
  }

  #offer(kind) {
    const box = el("input", {
      type: "checkbox", checked: true,
      onchange: () => {
        if (box.checked) this.#hidden.delete(kind);
        else this.#hidden.add(kind);
        this.#filter();
      },
    });
    this.#kinds.set(kind, box);
    this.kinds.append(el("label.toggle", {}, box, el("span", {}, kind)));
  }

  #wanted(line) {
    return !this.#hidden.has(line.dataset.kind) && line.textContent.toLowerCase().includes(this.text.value.toLowerCase());
  }

  #filter() {
    for (const line of this.list.children) line.hidden = !this.#wanted(line);
  }
}

export class AlarmList {
  constructor(node) {
    this.list = el("div.left");
    this.element = el("article.panel", {}, el("h2", {}, "Alarms"), this.list);
    node.bus.on("alarms", (on) => this.#show(on));
    node.bus.on("hello", () => this.#show(new Map()));
  }

  #show(on) {
    const lines = [...on.values()].map((what) => el("div.alarm", { role: "alert" }, what));
    this.list.replaceChildren(...(lines.length ? lines : [el("div.alarm.quiet", {}, "No alarm is on.")]), this.counts ?? "");
  }

  /** What the bridge and the web server count is shown under the alarms. */
  count(name, value) {
    this.counts ??= el("dl.readings");
    if (!this.counts.isConnected) this.list.append(this.counts);
    let cell = this.counts.querySelector(`[data-name="${CSS.escape(name)}"]`);
    if (!cell) {
      cell = el("dd.mono");
      cell.dataset.name = name;
      this.counts.append(el("dt", {}, name), cell);
    }
    write(cell, value);
  }
}

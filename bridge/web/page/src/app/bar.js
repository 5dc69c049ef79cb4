// The bar at the top: which node, which view, how it is, how old the picture is.

import { el, enable, write } from "./dom.js";
import { milliseconds, moment } from "./format.js";

/** What leads from one state of the node to the next. */
const ONWARD = { configured: "arm", cleared: "arm", armed: "run", tripped: "clear" };

export class Bar {
  #node;
  #loop;

  constructor(node, loop, router, toasts) {
    this.#node = node;
    this.#loop = loop;
    this.name = el("span.node", {}, "hilnode");
    this.link = el("span.link", {}, el("i.dot"), el("span"));
    this.state = el("span.chip.state");
    this.time = el("span.mono.time");
    this.age = this.#reading("age", "How old the displayed state is when its picture is finished: median, and in brackets the worst but one percent");
    this.fps = this.#reading("fps", "Pictures drawn per second");
    this.role = el("span.chip.role");
    this.onward = el("button.small", { onclick: () => toasts.attempt(node.ask(ONWARD[node.stateName])) }, "Arm");
    this.trip = el("button.small.danger", { onclick: () => toasts.attempt(node.ask("trip")), "data-title": "Devices to their safe values, now" }, "Trip");
    this.element = el("header.bar", {},
      el("span.brand", {}, el("b", {}, "hil"), "node"),
      this.name,
      el("nav", { "aria-label": "pages" }, router.links),
      el("span.gap"),
      this.state, this.onward, this.trip, this.time, this.age.element, this.fps.element, this.role, this.link);
    node.bus.on("link", () => this.#linked());
    node.bus.on("hello", () => this.#linked());
    setInterval(() => this.#write(), 200);
    this.#linked();
  }

  #reading(label, title) {
    const value = el("b.mono", {}, "–");
    return { value, element: el("span.reading", { title }, el("small", {}, label), value) };
  }

  #linked() {
    const { up, why } = this.#node.link;
    this.link.classList.toggle("up", up);
    write(this.link.lastChild, up ? (this.#node.hello?.replay ? "replay" : "live") : "no link");
    this.link.title = up ? "The server hears the node" : why;
    document.body.classList.toggle("unlinked", !up);
    const hello = this.#node.hello;
    write(this.name, hello?.node ?? "");
    write(this.role, hello?.role ?? "–");
    this.role.title = "What this page may do: watch, operate or admin";
  }

  #write() {
    const node = this.#node;
    const { hello } = node;
    const name = node.paused ? "paused" : hello?.replay ? "replay" : node.stateName;
    write(this.state, name);
    this.state.dataset.state = name;
    write(this.time, moment(node.state?.t ?? NaN));
    const { p50, p99 } = this.#loop.spread();
    write(this.age.value, p50 === undefined ? "–" : `${milliseconds(p50)} (${milliseconds(p99)})`);
    write(this.fps.value, this.#loop.fps.toFixed(this.#loop.fps < 10 ? 1 : 0));
    const live = hello && !hello.replay;
    const next = ONWARD[node.stateName];
    this.onward.hidden = !live || !next;
    this.trip.hidden = !live || !["armed", "running"].includes(node.stateName);
    if (next) write(this.onward, next[0].toUpperCase() + next.slice(1));
    enable(this.onward, node.denied());
    enable(this.trip, node.denied());
  }
}

// Short words at the edge of the page: what was refused and why, what just happened.

import { el } from "./dom.js";

const SHOWN = { info: 3000, bad: 8000 }; // [ms]
const MOST = 4;

export class Toasts {
  constructor() {
    this.element = el("div.toasts", { role: "status", "aria-live": "polite" });
  }

  say(text, kind = "info") {
    const toast = el(`div.toast.${kind}`, { onclick: () => toast.remove() }, text);
    this.element.append(toast);
    while (this.element.children.length > MOST) this.element.firstChild.remove();
    setTimeout(() => toast.remove(), SHOWN[kind]);
  }

  /** Ask the node for something and say so if it refuses; null then. */
  async attempt(promise, done = "") {
    try {
      const result = await promise;
      if (done) this.say(done);
      return result ?? {};
    } catch (error) {
      this.say(error.message, "bad");
      return null;
    }
  }
}

// The operator's place: the machine in front, instruments above, controls at both sides, and one button that says who
// drives.

import { el, enable, write } from "../app/dom.js";
import { CameraButtons } from "../scene/page.js";
import { Deadman } from "./deadman.js";
import { Gauges } from "./gauges.js";
import { Panel } from "./panel.js";

const HELP = [
  ["W A S D", "left stick"], ["I J K L", "right stick"], ["↑ ↓", "drive"], ["← →", "steer"], ["space", "brake"],
  ["R F", "blade"], ["T G", "outriggers"], ["H", "horn"], ["shift", "half as much"], ["Esc", "let go"],
];

export class OperatorPage {
  path = "/operator";
  title = "Operator";
  stage = true;

  #keys = (event) => {
    if (event.key === "Escape") this.deadman.release("let go");
  };

  constructor(node, stage, toasts) {
    this.node = node;
    this.scene = stage;
    this.toasts = toasts;
    this.gauges = new Gauges(node);
    this.panel = new Panel(node);
    this.cameras = new CameraButtons(node, stage);
    this.deadman = new Deadman(node, {
      read: (now) => this.panel.read(now),
      pick: (now) => this.panel.pick(now),
      changed: (on, why) => this.#changed(on, why),
    });
    this.take = el("button.take", { onclick: () => (this.deadman.on ? this.deadman.release("let go") : this.deadman.take()) }, "Take the controls");
    this.back = el("button.back", { onclick: () => this.#giveBack(), hidden: true }, "Give it back to the virtual operator");
    this.holder = el("small.holder");
    this.warnings = el("div.warnings", { role: "alert" });
    this.host = el("div.host");
    this.element = el("section.operator", {},
      el("div.instruments", {}, this.gauges.element),
      el("aside.side", {}, this.panel.sticks.left.element, this.panel.levers),
      el("div.view", {}, this.host, el("div.over", {}, this.cameras.element, this.gauges.lamps), this.warnings),
      el("aside.side", {}, this.panel.sticks.right.element, this.panel.switches),
      el("footer", {}, el("div.who", {}, this.take, this.back, el("div", {}, this.holder, this.panel.pad)),
        el("div.keys", {}, HELP.map(([keys, what]) => el("span", {}, el("kbd", {}, keys), what)))));
    node.bus.on("alarms", (on) => (this.alarms = on));
    node.bus.on("cab", ({ holder }) => {
      this.who = holder;
      this.#tell();
    });
    node.bus.on("driver", ({ drivers }) => {
      this.relieved = !drivers?.cab?.twin;
      this.#tell();
    });
    node.bus.on("hello", () => {
      this.alarms = new Map();
      this.element.classList.remove("driving");
    });
  }

  /** Who drives. A virtual operator that was relieved stays away until it is asked back. */
  #tell() {
    const standIn = this.node.hello?.cab?.stand_in ?? "";
    const free = this.who === "nobody" && Boolean(standIn);
    this.back.hidden = !(free && this.relieved) || this.deadman.on;
    let text = `The controls are held by ${this.who ?? "nobody"}.`;
    if (this.who === "you") text = "You hold the controls.";
    else if (free) text = this.relieved ? "The controls are held by nobody: levers centred, parking brake on." : `The ${standIn === "operator" ? "virtual operator" : standIn} drives.`;
    write(this.holder, text);
  }

  async #giveBack() {
    try {
      await this.node.ask("seat", { ecu: "cab", to: "twin" });
    } catch (error) {
      this.toasts.say(`Not given back: ${error.message}`, "bad");
    }
  }

  #changed(on, why) {
    this.panel.keyboard.on = on;
    if (!on) {
      this.panel.neutral();
      if (why !== "let go") this.toasts.say(`Controls let go: ${why}.`, "bad");
    }
    this.element.classList.toggle("driving", on);
    write(this.take, on ? "Let go (Esc)" : "Take the controls");
    this.#tell();
  }

  show() {
    this.host.append(this.scene.canvas);
    this.scene.resize();
    this.cameras.show();
    addEventListener("keydown", this.#keys);
  }

  hide() {
    removeEventListener("keydown", this.#keys);
    this.deadman.release("another page was opened");
  }

  #warn() {
    const lines = [...(this.alarms?.values() ?? [])];
    const { link, stateName, status } = this.node;
    if (!link.up) lines.unshift(`No word from the node: ${link.why}`);
    else if (stateName !== "running" && !this.node.hello?.replay) lines.unshift(`The node is ${stateName}: devices get safe values.`);
    if (this.node.paused) lines.unshift("The plant is paused.");
    const stale = Array.isArray(status.stale) ? status.stale : [];
    if (this.deadman.on && stale.length) lines.push(`Stale inputs: ${stale.slice(0, 4).join(", ")}`);
    write(this.warnings, lines.slice(0, 4).join("\n"));
  }

  update() {
    this.gauges.update();
    this.#warn();
    if (this.deadman.on) {
      enable(this.take);
      return;
    }
    enable(this.take, this.deadman.obstacle);
    enable(this.back, this.node.denied());
    this.panel.pick(performance.now());
  }
}

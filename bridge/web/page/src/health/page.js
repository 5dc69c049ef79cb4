// Health: devices, alarms, events, and what the bridge has counted.

import { el } from "../app/dom.js";
import { DriverCards } from "./drivers.js";
import { AlarmList, Alarms, EventLog } from "./events.js";

export class HealthPage {
  path = "/health";
  title = "Health";

  constructor(node, toasts) {
    this.alarms = new Alarms(node.bus);
    this.list = new AlarmList(node);
    this.element = el("section.health", {}, new DriverCards(node, toasts).element, this.list.element, new EventLog(node).element);
    node.bus.on("bridge", ({ lost, commands }) => {
      if (lost !== undefined) this.list.count("rows lost by the publisher", `${lost}`);
      for (const [name, count] of Object.entries(commands ?? {})) if (count) this.list.count(`commands ${name}`, `${count}`);
    });
    node.bus.on("web", ({ pages, round_trip_ms: trip }) => {
      if (pages !== undefined) this.list.count("pages open", `${pages}`);
      if (Number.isFinite(trip)) this.list.count("picture acknowledged after", `${trip.toFixed(0)} ms`);
    });
  }
}

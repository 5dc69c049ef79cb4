import { el } from "../app/dom.js";

export class HealthPage {
  path = "/health";
  title = "Health";
  element = el("section.health");
}

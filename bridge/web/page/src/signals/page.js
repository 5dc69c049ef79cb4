import { el } from "../app/dom.js";

export class SignalsPage {
  path = "/signals";
  title = "Signals";
  element = el("section.signals");
}

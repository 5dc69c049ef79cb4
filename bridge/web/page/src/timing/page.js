import { el } from "../app/dom.js";

export class TimingPage {
  path = "/timing";
  title = "Timing";
  element = el("section.timing");
}

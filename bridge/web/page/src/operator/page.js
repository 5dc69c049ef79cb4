import { el } from "../app/dom.js";

export class OperatorPage {
  path = "/operator";
  title = "Operator";
  element = el("section.operator");
}

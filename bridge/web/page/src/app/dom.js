// Elements in one line. Nothing here parses HTML, so no name that a node sends can become markup.

/**
 * An element: el("button.primary", {title: "..."}, "Pause"). Keys that begin with "on" are listeners, `data-` and
 * `aria-` keys and the like attributes, everything else a property.
 */
export function el(what, given = {}, ...children) {
  const [tag, ...classes] = what.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && !key.includes("-")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of SVG; all keys are attributes. */
export function svg(tag, given = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(given)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Text that changes often is written only when it is different: layout is what costs. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A button that says why it cannot be used, when it cannot. */
export function enable(button, why = "") {
  button.disabled = why !== "";
  button.title = why || button.dataset.title || "";
}

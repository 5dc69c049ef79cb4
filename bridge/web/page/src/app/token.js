// A server beyond this PC wants a token. It comes with the address (#token=...); who has opened the page without it
// is asked.

import { el } from "./dom.js";

export function askForToken(bus, socket) {
  const input = el("input", { type: "password", autocomplete: "off", "aria-label": "token", required: true });
  const why = el("p.dim");
  const dialog = el("dialog", {},
    el("form", {
      onsubmit: (event) => {
        event.preventDefault();
        socket.token = input.value.trim();
        dialog.close();
        socket.connect();
      },
    }, el("h2", {}, "This node wants a token"), why, input, el("button.primary", {}, "Connect")));
  document.body.append(dialog);
  bus.on("socket", ({ token, why: reason }) => {
    if (!token || dialog.open) return;
    why.textContent = `${reason}. It is printed where the display was started.`;
    dialog.showModal();
  });
}

// One websocket to the server the page came from, opened again by itself with ever longer pauses.

const FIRST_PAUSE = 250; // [ms]
const LONGEST_PAUSE = 4000;
const TOKEN_REFUSED = 4401; // close code: who connects must show a token

export class Socket {
  #bus;
  #socket = null;
  #pause = FIRST_PAUSE;
  #timer = 0;

  /** Tells `bus`: "socket" {open, why, token}, "text" with an object, "binary" with a buffer. */
  constructor(bus) {
    this.#bus = bus;
    // The token stays in memory: it goes neither into the address that is sent nor into any storage.
    this.token = new URLSearchParams(location.hash.slice(1)).get("token") ?? "";
    addEventListener("online", () => this.#hurry());
    document.addEventListener("visibilitychange", () => document.hidden || this.#hurry());
  }

  get open() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Bytes given to the browser and not sent yet. */
  get unsent() {
    return this.#socket?.bufferedAmount ?? 0;
  }

  connect() {
    clearTimeout(this.#timer);
    const query = this.token ? `?token=${encodeURIComponent(this.token)}` : "";
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/stream${query}`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#bus.tell("socket", { open: true, why: "" });
    socket.onmessage = ({ data }) => {
      this.#pause = FIRST_PAUSE;
      if (typeof data === "string") this.#bus.tell("text", JSON.parse(data));
      else this.#bus.tell("binary", data);
    };
    socket.onclose = ({ code, reason }) => this.#closed(socket, code, reason);
    this.#socket = socket;
  }

  /** Send an object; false if nobody would hear it. */
  send(message) {
    if (!this.open) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  #closed(socket, code, reason) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    const token = code === TOKEN_REFUSED;
    this.#bus.tell("socket", { open: false, why: reason || (token ? "a token is needed" : "no connection"), token });
    if (token) return; // trying again with the same token would be refused again
    this.#timer = setTimeout(() => this.connect(), this.#pause * (0.75 + 0.5 * Math.random()));
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  #hurry() {
    if (this.#socket !== null || !this.#timer) return;
    this.#pause = FIRST_PAUSE;
    this.connect();
  }
}

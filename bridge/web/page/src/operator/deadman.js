// The deadman: inputs leave this page only while somebody has taken the controls and the page is seen and has the
// focus. Whatever ends that (another window, a sleeping tab, a lost line, a closed page) ends the sending at once;
// the node's own rule for stale inputs does the rest, so nothing here needs to be trusted. The server says who holds
// the controls: when it says that nobody does, or nothing at all, they are gone until somebody takes them again.

const PERIOD = 20; // [ms]
const SILENT = 1000; // [ms] without a word from the server
const BUSY = 250; // [ms] between two turns: what was heard meanwhile has not been looked at yet
const UNSENT = 2000; // [bytes] that wait for a line that takes nothing: about a third of a second of inputs

export class Deadman {
  #timer = 0;
  #seq = 0;
  #held = false; // whether the server has said that the controls are ours
  #turn = 0; // [ms] when something was sent last

  /**
   * `read(now)` gives the values to send, `pick(now)` the same as long as somebody else is still at the controls: what
   * the machine has just now. `changed(on, why)` is told when the controls are taken or gone.
   */
  constructor(node, { read, pick, changed }) {
    Object.assign(this, { node, read, pick, changed });
    addEventListener("blur", () => this.release("the page lost the focus"));
    addEventListener("pagehide", () => this.release("the page was closed"));
    document.addEventListener("visibilitychange", () => document.hidden && this.release("the page was hidden"));
    node.bus.on("link", ({ up, why }) => up || this.release(`no link: ${why}`));
    node.bus.on("hello", () => this.release("the node has begun anew"));
    node.bus.on("cab", ({ holder = "", why }) => {
      if (why || /^somebody/.test(holder)) this.release(why || `the controls are held by ${holder}`);
      else if (holder === "you") this.#held = true;
      else if (this.#held) this.release("nothing was heard of this page for too long, or the machine was given back");
    });
  }

  get on() {
    return this.#timer !== 0;
  }

  /** Why the controls cannot be taken; empty if they can. */
  get obstacle() {
    const { node } = this;
    if (node.hello?.replay) return "a recording cannot be driven";
    if (node.hello && !node.hello.cab) return "this node has no driver \"cab\" to be driven by; the excavator has one with configs/excavator.toml";
    return node.denied();
  }

  take() {
    if (this.on || this.obstacle) return;
    this.#held = false;
    this.#turn = performance.now();
    this.node.cab("take");
    this.#timer = setInterval(() => this.#send(), PERIOD);
    this.changed(true, "");
    this.#send();
  }

  #send() {
    const now = performance.now();
    const busy = now - this.#turn > BUSY;
    this.#turn = now;
    if (document.hidden || !document.hasFocus()) this.release("the page lost the focus");
    else if (!busy && now - this.node.heard > SILENT) this.release("no word from the server");
    else if (this.node.unsent > UNSENT) this.release("the line takes nothing");
    else this.node.cab({ seq: ++this.#seq, at: now / 1e3, values: this.#held ? this.read(now) : this.pick(now) });
  }

  release(why) {
    if (!this.on) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    this.#held = false;
    this.node.cab(null);
    this.changed(false, why);
  }
}

// The deadman: inputs leave this page only while somebody has taken the controls and the page is seen and has the
// focus. Whatever ends that (another window, a sleeping tab, a lost line, a closed page) ends the sending at once;
// the node's own rule for stale inputs does the rest, so nothing here needs to be trusted.

const PERIOD = 20; // [ms]

export class Deadman {
  #timer = 0;
  #seq = 0;

  /** `read()` gives the values to send; `changed(on, why)` is told when the controls are taken or gone. */
  constructor(node, read, changed) {
    Object.assign(this, { node, read, changed });
    addEventListener("blur", () => this.release("the page lost the focus"));
    addEventListener("pagehide", () => this.release("the page was closed"));
    document.addEventListener("visibilitychange", () => document.hidden && this.release("the page was hidden"));
    node.bus.on("link", ({ up, why }) => up || this.release(`no link: ${why}`));
    node.bus.on("hello", () => this.release("the node has begun anew"));
    node.bus.on("cab", ({ holder = "", why }) => {
      if (why || /^somebody/.test(holder)) this.release(why || `the controls are held by ${holder}`);
    });
  }

  get on() {
    return this.#timer !== 0;
  }

  /** Why the controls cannot be taken; empty if they can. */
  get obstacle() {
    const { node } = this;
    if (node.hello?.replay) return "a recording cannot be driven";
    if (node.hello && !node.hello.cab) return "this node has no cab: no driver of the kind ecu for it";
    return node.denied();
  }

  take() {
    if (this.on || this.obstacle) return;
    this.#timer = setInterval(() => this.#send(), PERIOD);
    this.changed(true, "");
    this.#send();
  }

  #send() {
    if (document.hidden || !document.hasFocus()) this.release("the page lost the focus");
    else this.node.cab(++this.#seq, this.read(performance.now()));
  }

  release(why) {
    if (!this.on) return;
    clearInterval(this.#timer);
    this.#timer = 0;
    this.node.cab(0, null);
    this.changed(false, why);
  }
}

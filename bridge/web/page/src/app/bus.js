// Who tells whom: a list of listeners per topic, called in the order in which they came.

export class Bus {
  #listeners = new Map();

  /** Call `listener` whenever `topic` is told; the answer takes it away again. */
  on(topic, listener) {
    if (!this.#listeners.has(topic)) this.#listeners.set(topic, new Set());
    this.#listeners.get(topic).add(listener);
    return () => this.#listeners.get(topic).delete(listener);
  }

  tell(topic, message) {
    for (const listener of this.#listeners.get(topic) ?? []) listener(message);
  }
}

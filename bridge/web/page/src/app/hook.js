// `window.hilnode`: what this page shows, for tests and for the curious. It reads, and changes nothing but how things
// are looked at.

/** Errors are gathered from the first line on; the rest is there once the page stands. */
export function openHook() {
  const errors = [];
  addEventListener("error", ({ message, filename, lineno }) => errors.push(`${message} (${filename}:${lineno})`));
  addEventListener("unhandledrejection", ({ reason }) => errors.push(`rejected: ${reason}`));
  document.addEventListener("securitypolicyviolation", (event) =>
    errors.push(`content security policy: ${event.violatedDirective} ${event.blockedURI}`),
  );
  const hook = { errors };
  window.hilnode = hook;
  hook.attach = ({ node, stage, loop }) => {
    const read = (object) => Object.fromEntries(Object.entries(object).map(([key, get]) => [key, { get, enumerable: true }]));
    delete hook.attach;
    Object.defineProperties(hook, read({
      hello: () => node.hello,
      link: () => node.link,
      frame: () => loop.frame, // of the state that was drawn last
      tick: () => loop.drawn?.tick,
      t: () => loop.drawn?.t,
      state: () => node.stateName,
      bodies: () => Object.fromEntries(stage.bodies.names.map((name) => [name, stage.bodies.pose(name)])),
      props: () => Object.fromEntries(stage.bodies.props.filter((prop) => prop.visible).map(({ name }) => [name, stage.bodies.pose(name)])),
      scaled: () => stage.bodies.scaled,
      arrows: () => stage.arrows.count,
      picked: () => stage.picker.body,
      joints: () => Object.fromEntries(stage.bodies.frames.map((joint) => [joint.name, joint])),
      ages: () => loop.ages,
      pictures: () => loop.pictures,
      clockError: () => node.clock.error,
      fps: () => loop.fps,
    }));
    hook.value = (name) => node.value(name);
    hook.terrainSum = (grid) => stage.terrain.sum(grid);
    hook.terrainUnits = (grid) => stage.terrain.units(grid);
    hook.smooth = (on) => (stage.motion.enabled = on);
    hook.pick = (name) => stage.picker.choose(name);
    hook.camera = (at, target) => stage.cameras.look(at, target);
    hook.pickAt = (x, y) => stage.picker.at(x, y);
  };
  return hook;
}

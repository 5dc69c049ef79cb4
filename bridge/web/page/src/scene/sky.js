// Light: a sky that fades into the horizon's haze, a sun with soft shadows that follow the machine, light from above
// and below. Axes as in the simulation: z is up.

import * as THREE from "three";

export const HAZE = new THREE.Color(0xc9d6de);
const ZENITH = new THREE.Color(0x4f86c0);
const SUN = new THREE.Vector3(0.45, -0.62, 0.72).normalize();
const REACH = 11; // [m] to each side of the machine that shadows are drawn for

/** A dome around everything, coloured by height, with a glow about the sun. */
function dome() {
  const material = new THREE.ShaderMaterial({
    side: THREE.BackSide,
    depthWrite: false,
    fog: false,
    uniforms: { haze: { value: HAZE }, zenith: { value: ZENITH }, sun: { value: SUN } },
    vertexShader: `
      varying vec3 seen;
      void main() {
        seen = position;
        gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
      }`,
    fragmentShader: `
      uniform vec3 haze, zenith, sun;
      varying vec3 seen;
      void main() {
        vec3 d = normalize(seen);
        float up = max(d.z, 0.0);
        vec3 colour = mix(haze, zenith, pow(up, 0.55));
        float near = max(dot(d, sun), 0.0);
        colour += vec3(1.0, 0.85, 0.6) * (0.18 * pow(near, 8.0) + 0.8 * pow(near, 900.0));
        gl_FragColor = vec4(colour, 1.0);
        #include <colorspace_fragment>
      }`,
  });
  const mesh = new THREE.Mesh(new THREE.SphereGeometry(450, 24, 16), material);
  mesh.renderOrder = 1; // behind all that is solid: what they cover need not be drawn
  mesh.raycast = () => {};
  return mesh;
}

/** The same without the sun's glow, coloured at its corners only: for who draws with the processor. */
function plainDome() {
  const geometry = new THREE.SphereGeometry(450, 24, 16);
  const { position } = geometry.attributes;
  const colours = new Float32Array(3 * position.count);
  for (let v = 0; v < position.count; v++) {
    const up = Math.max(0, position.getZ(v) / 450);
    new THREE.Color().lerpColors(HAZE, ZENITH, up ** 0.55).toArray(colours, 3 * v);
  }
  geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3));
  const material = new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.BackSide, depthWrite: false, fog: false, toneMapped: false });
  const mesh = new THREE.Mesh(geometry, material);
  mesh.renderOrder = 1;
  mesh.raycast = () => {};
  return mesh;
}

export class Sky {
  constructor(scene, renderer, { shadowSize, reflect, plain }) {
    this.dome = plain ? plainDome() : dome();
    this.sun = new THREE.DirectionalLight(0xfff1dc, 3.0);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(shadowSize, shadowSize);
    this.sun.shadow.bias = -0.0006;
    this.sun.shadow.normalBias = 60 / shadowSize;
    this.sun.shadow.radius = 3;
    const eye = this.sun.shadow.camera;
    [eye.left, eye.right, eye.top, eye.bottom, eye.near, eye.far] = [-REACH, REACH, REACH, -REACH, 1, 90];
    const above = new THREE.HemisphereLight(0xbcd3ea, 0x75664f, 1.15);
    above.position.set(0, 0, 1);
    scene.fog = new THREE.Fog(HAZE, 45, 260);
    scene.add(this.dome, this.sun, this.sun.target, above);
    this.reflections = reflect && renderer ? this.#reflect(renderer) : null; // for paint, steel and glass; the ground reflects nothing
  }

  /** What paint and glass reflect: the same sky over plain ground, blurred once. */
  #reflect(renderer) {
    const around = new THREE.Scene();
    const ground = new THREE.Mesh(
      new THREE.CircleGeometry(400, 24).translate(0, 0, -6),
      new THREE.MeshBasicMaterial({ color: 0x8a7a62, side: THREE.DoubleSide }),
    );
    const sky = dome();
    around.add(sky, ground);
    const maker = new THREE.PMREMGenerator(renderer);
    const { texture } = maker.fromScene(around, 0, 0.1, 1000, { size: 64 });
    maker.dispose();
    for (const mesh of [sky, ground]) {
      mesh.geometry.dispose();
      mesh.material.dispose();
    }
    return texture;
  }

  /** Shadows where the machine is; whole metres at a time, so that their edges do not swim. */
  follow(target, camera) {
    this.sun.target.position.set(Math.round(target.x), Math.round(target.y), Math.round(target.z));
    this.sun.position.copy(this.sun.target.position).addScaledVector(SUN, 45);
    this.dome.position.copy(camera.position);
  }
}

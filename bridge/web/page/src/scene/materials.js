// What shapes are made of. Entries give a colour and may give a finish; equal ones share a material.

import * as THREE from "three";

const FINISHES = {
  paint: { roughness: 0.42, metalness: 0.08 },
  steel: { roughness: 0.45, metalness: 0.7 },
  rubber: { roughness: 0.92, metalness: 0.0 },
  glass: { roughness: 0.04, metalness: 0.1, transparent: true, opacity: 0.3, depthWrite: false },
  soil: { roughness: 1.0, metalness: 0.0 },
  grass: { roughness: 1.0, metalness: 0.0 },
  rock: { roughness: 0.9, metalness: 0.0 },
  wood: { roughness: 0.8, metalness: 0.0 },
  concrete: { roughness: 0.85, metalness: 0.0 },
};

const CLEAR = 0.07; // opacity of panes for who sits behind them

/** The colour of an entry that names none. */
export const PLAIN = [0.9, 0.62, 0];

export class Materials {
  #made = new Map();

  /** Without reflections the processor draws: light that costs little has to do. */
  constructor(reflections) {
    this.reflections = reflections;
  }

  /** The material of an entry. */
  of({ colour = PLAIN, finish = "paint" }) {
    return this.#make(`${finish} ${colour}`, finish, { color: new THREE.Color().setRGB(...colour, THREE.SRGBColorSpace) });
  }

  /** The one of all entries of a finish: their colours are those of the vertices. */
  shared(finish) {
    return this.#make(finish, finish, { vertexColors: true });
  }

  #make(key, finish, given) {
    let material = this.#made.get(key);
    if (!material) {
      const how = FINISHES[finish] ?? FINISHES.paint;
      if (this.reflections) {
        material = new THREE.MeshStandardMaterial({ ...given, ...how });
        material.envMap = this.reflections;
        material.envMapIntensity = 0.45;
      } else {
        const { roughness: _, metalness: __, ...rest } = how;
        material = new THREE.MeshLambertMaterial({ ...given, ...rest });
      }
      this.#made.set(key, material);
    }
    return material;
  }

  /** Panes from outside, or from right behind them. */
  seeThrough(clear) {
    for (const [key, material] of this.#made) if (key.startsWith("glass")) material.opacity = clear ? CLEAR : FINISHES.glass.opacity;
  }

  dispose() {
    for (const material of this.#made.values()) material.dispose();
    this.#made.clear();
  }
}

"""Mechanisms for the core in natural coordinates, and what they should do, by scipy in coordinates of their own."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import minimize_scalar

from plant.engine.as_plant import as_plant
from plant.engine.compile import Engine, compile_world
from plant.natural.builder import Options
from plant.world.world import World

G = 9.80665
Y = (0.0, 1.0, 0.0)


def natural(world: World, dt: float = 1e-3, contacts: int = 64, **options: Any) -> Engine:
    """A world compiled for this core."""
    return compile_world(world, dt, contacts=contacts, stepper="ali3p", natural=Options(**options))


def bar(world: World, name: str, start: Any, end: Any, mass: float, **motion: Any) -> None:
    """A uniform rod with a little thickness between two points."""
    p, q = np.array(start, float), np.array(end, float)
    length = float(np.linalg.norm(q - p))
    way = (q - p) / length
    across = np.eye(3) - np.outer(way, way)
    inertia = mass * length**2 / 12 * across + 1e-4 * mass * np.eye(3)
    world.body(name, mass=mass, inertia=inertia, pos=(p + q) / 2, **motion)


@dataclass(frozen=True)
class FourBar:
    """A crank of 1 m that can go round, a coupler and a rocker, in the plane x z; the crank stands upright at first."""

    speed: float = 5.0  # [rad/s] of the crank

    def hanging(self, turn: float) -> World:
        """At rest with the crank at a turn."""
        w, at = World(), self._places(turn)
        b, c = (at[0], 0, at[1]), (at[2], 0, at[3])
        for name, p, q, mass in (("crank", (0, 0, 0), b, 1.0), ("coupler", b, c, 2.0), ("rocker", c, (2, 0, 0), 2.0)):
            bar(w, name, p, q, mass)
        for name, one, other, pin in (
            ("a", None, "crank", (0, 0, 0)),
            ("b", "crank", "coupler", b),
            ("c", "coupler", "rocker", c),
            ("d", None, "rocker", (2, 0, 0)),
        ):
            w.hinge(name, one, other, at=pin, axis=Y)
        return w

    def rest(self) -> tuple[float, float]:
        """The turn at which it hangs, and the frequency of small swings about it [rad/s]."""
        turns = np.linspace(0, 2 * np.pi, 721)
        guess = turns[int(np.argmin([self.terms(t)[1] for t in turns]))]
        found = minimize_scalar(lambda t: self.terms(t)[1], bounds=(guess - 0.1, guess + 0.1), options={"xatol": 1e-10})
        at, d = float(found.x), 1e-3
        felt, here = self.terms(at)
        return at, float(np.sqrt((self.terms(at + d)[1] - 2 * here + self.terms(at - d)[1]) / d**2 / felt))

    def world(self) -> World:
        w = World()
        w_crank, w_rocker = self.speed, self.speed / 2  # the coupler only shifts at first
        spin, half = (0, w_crank, 0), (0, w_rocker, 0)
        bar(w, "crank", (0, 0, 0), (0, 0, 1), 1.0, vel=(w_crank / 2, 0, 0), spin=spin)
        bar(w, "coupler", (0, 0, 1), (2, 0, 2), 2.0, vel=(w_crank, 0, 0))
        bar(w, "rocker", (2, 0, 2), (2, 0, 0), 2.0, vel=(w_crank / 2, 0, 0), spin=half)
        w.hinge("a", None, "crank", at=(0, 0, 0), axis=Y)
        w.hinge("b", "crank", "coupler", at=(0, 0, 1), axis=Y)
        w.hinge("c", "coupler", "rocker", at=(2, 0, 2), axis=Y)
        w.hinge("d", None, "rocker", at=(2, 0, 0), axis=Y)
        return w

    @staticmethod
    def _places(turn: float) -> NDArray[np.float64]:
        """Ends of the coupler, x and z of both, at a turn of the crank."""
        b = np.array([np.sin(turn), np.cos(turn)])
        d = np.array([2.0, 0.0])
        way = d - b
        far = np.linalg.norm(way)
        along = (5.0 - 4.0 + far**2) / (2 * far)  # coupler squared 5, rocker squared 4
        up = np.sqrt(5.0 - along**2)
        u = way / far
        return np.concatenate([b, b + along * u + up * np.array([-u[1], u[0]])])

    def terms(self, turn: float) -> tuple[float, float]:
        """Moment of inertia that the crank feels, and the potential energy, at a turn."""
        d = 1e-4
        rate = (self._places(turn + d) - self._places(turn - d)) / (2 * d)
        at = self._places(turn)
        felt, potential = 0.0, 0.0
        for mass, i, k in ((1.0, None, 0), (2.0, 0, 2), (2.0, 2, None)):
            p = at[i : i + 2] if i is not None else np.zeros(2)
            q = at[k : k + 2] if k is not None else np.array([2.0, 0.0])
            u = rate[i : i + 2] if i is not None else np.zeros(2)
            v = rate[k : k + 2] if k is not None else np.zeros(2)
            length = np.linalg.norm(q - p)
            way = (q - p) / length
            spin = (way[1] * (v - u)[0] - way[0] * (v - u)[1]) / length
            centre = (u + v) / 2
            felt += mass * centre @ centre + (mass * length**2 / 12 + 1e-4 * mass) * spin**2
            potential += mass * G * (p + q)[1] / 2
        return felt, potential

    def turn_after(self, seconds: float) -> float:
        """Turn of the crank, from the energy of the one coordinate."""

        def slope(_: float, y: NDArray[np.float64]) -> list[float]:
            d = 1e-4
            (m0, v0), (m1, v1) = self.terms(y[0] - d), self.terms(y[0] + d)
            m, _v = self.terms(y[0])
            return [y[1], (-(v1 - v0) / (2 * d) - 0.5 * (m1 - m0) / (2 * d) * y[1] ** 2) / m]

        run = solve_ivp(slope, (0, seconds), [0.0, self.speed], rtol=1e-10, atol=1e-10, method="DOP853")
        return float(run.y[0, -1])


def back_to_the_start(engine: Engine) -> Callable[[], None]:
    """What resets the engine as the node would."""
    plant = as_plant(engine, "machine")
    assert plant.reset is not None
    address, owner = plant.reset
    reset = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)(address)
    numbers = [np.zeros(len(x) + 1) for x in (plant.inputs, plant.outputs)] + [np.zeros(7 * len(plant.bodies))]

    def again() -> None:
        assert reset(owner, 0, 0, *(x.ctypes.data for x in numbers)) == 0

    return again


def crank_turn(engine: Engine) -> float:
    """Turn of the crank from its place, within half a revolution."""
    x, _, z = engine.content.data.state.pos[engine.index("crank")]
    return float(np.arctan2(x, z))

"""The excavator outside a node, in simulated time: for tests, benchmarks and trying out work cycles.

rig = Rig(terrain="level")
rig.hold(**{"right.y": -1.0})
rig.run(2.0)
print(rig["boom.angle"])

python tools/excavator_rig.py --seconds 60          # the virtual operator's cycle, as fast as possible
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drivers.operator.phases import Phases
from plant.machines.excavator.plant import NAME, create

STEP = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, *[ctypes.c_void_p] * 4)
CYCLE = Path(__file__).resolve().parent.parent / "configs" / "excavator-cycle.toml"
LOOK = 10  # steps between two looks of the operator


class Rig:
    """A plant of kind excavator with its arrays."""

    def __init__(self, dt: float = 1e-3, **options: Any) -> None:
        self.plant = create(dt, **options)
        self.dt = dt
        self.inputs = np.zeros(len(self.plant.inputs))
        self.outputs = np.zeros(len(self.plant.outputs))
        self.poses = np.zeros(7 * len(self.plant.bodies))
        self._input = {s.name.removeprefix(f"{NAME}."): k for k, s in enumerate(self.plant.inputs)}
        self._output = {s.name.removeprefix(f"{NAME}."): k for k, s in enumerate(self.plant.outputs)}
        self._body = {b.removeprefix(f"{NAME}."): k for k, b in enumerate(self.plant.bodies)}
        self._params = np.zeros(1)
        self._arrays = [a.ctypes.data for a in (self._params, self.inputs, self.outputs, self.poses)]
        self._step = STEP(self.plant.tasks[0].address)
        self._self = self.plant.tasks[0].self_address
        self.engine = self.plant.owner[0]  # type: ignore[index]
        self.steps = 0
        self.took: list[int] | None = None  # [ns] of each step, if it is a list
        self.let_go()
        self.reset()

    def reset(self) -> None:
        STEP(self.plant.reset[0])(self.plant.reset[1], 0, *self._arrays)
        self.steps = 0

    def __getitem__(self, name: str) -> float:
        return float(self.outputs[self._output[name]])

    def place(self, body: str) -> np.ndarray:
        """Position of a body's frame [m]."""
        at = 7 * self._body[body]
        return self.poses[at : at + 3].copy()

    def hold(self, **levers: float) -> None:
        """Levers from now on; the others keep what they have."""
        for name, value in levers.items():
            self.inputs[self._input[name]] = value

    def let_go(self) -> None:
        """All levers to their defaults, but the parking brake is off: somebody is in the cab."""
        self.inputs[:] = [s.default for s in self.plant.inputs]
        self.hold(parking=0.0)

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            began = time.perf_counter_ns()
            status = self._step(self._self, self.steps, *self._arrays)
            if self.took is not None:
                self.took.append(time.perf_counter_ns() - began)
            if status != 0:
                raise RuntimeError(f"step {self.steps}: {self.plant.explain(status)}")
            self.steps += 1

    def run(self, seconds: float) -> None:
        self.step(round(seconds / self.dt))

    def run_until(self, done: Callable[[], bool], at_most: float) -> bool:
        """Step until something is so; False if it was not within `at_most` seconds."""
        for _ in range(round(at_most / (LOOK * self.dt))):
            self.step(LOOK)
            if done():
                return True
        return False

    def work(self, hands: Phases, seconds: float, each: Callable[[], None] | None = None) -> None:
        """Let the operator of a script work for so long; `each` is called every time that it has looked."""
        eyes = {e: self._output[name] for e, name in EYES.items()}
        for _ in range(round(seconds / (LOOK * self.dt))):
            seen = {e: float(self.outputs[k]) for e, k in eyes.items()}
            self.hold(**_levers(hands.advance(LOOK * self.dt, seen), self._input))
            self.step(LOOK)
            if each is not None:
                each()


EYES = {
    "boom": "boom.angle",
    "stick": "stick.angle",
    "bucket": "bucket.angle",
    "swing": "swing.angle",
    "blade": "blade.angle",
    "outriggers": "outriggers.angle",
    "depth": "dig.depth",
    "fill": "bucket.fill",
    "x": "x",
    "y": "y",
    "speed": "speed",
}
"""What the operator's eyes see: eye to output."""


def _levers(values: Mapping[str, float], known: Mapping[str, int]) -> dict[str, float]:
    return {name: value for name, value in values.items() if name in known}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated time")
    parser.add_argument("--stepper", default="spook", choices=["spook", "ali3p"])
    parser.add_argument("--hydraulics", action="store_true", help="oil with pressures instead of guided cylinders")
    parser.add_argument("--cycle", default=str(CYCLE), help="script of the operator")
    given = parser.parse_args()
    rig, hands = Rig(stepper=given.stepper, hydraulics=given.hydraulics), Phases.from_file(given.cycle)
    rig.took = []
    phase, began = "", time.perf_counter()

    def tell() -> None:
        nonlocal phase
        if hands.now.name != phase:
            phase = hands.now.name
            angles = "  ".join(f"{name} {rig[f'{name}.angle']:5.2f}" for name in ("boom", "stick", "bucket", "swing"))
            print(
                f"{rig.steps * rig.dt:8.2f} s  {phase:14}  {angles}  x {rig['x']:5.2f}  "
                f"fill {rig['bucket.fill']:4.2f}  stability {rig['stability']:5.2f} m  "
                f"collisions {rig['collisions']:.0f}  soil out of balance {rig['soil.balance']:8.1e} m^3",
                flush=True,
            )

    rig.work(hands, given.seconds, tell)
    took = np.array(rig.took) * 1e-3
    p50, p99 = np.percentile(took, [50, 99])
    print(f"{given.seconds:g} s in {time.perf_counter() - began:.1f} s: {1e3 / took.mean():.1f} times real time")
    print(f"a step takes {p50:.0f} us in the median, {p99:.0f} us at 99 %")


if __name__ == "__main__":
    main()

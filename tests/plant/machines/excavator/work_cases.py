"""The excavator at work, for the tests of its manoeuvres and its digging: forces, places and levers by name."""

import math
from typing import Any

import numpy as np
from excavator_rig import Rig

from plant.machines.excavator.mechanism import WHEELS
from plant.machines.excavator.step import Excavator

G = 9.80665


class Work(Rig):
    """A rig with what is behind it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"terrain": "level", "truck": False, "pipe": False, "objects": 0, **options})
        self.content: Excavator = self.plant.owner[1].content  # type: ignore[index]
        self.state = self.engine.content.data.state

    @property
    def seconds(self) -> float:
        return self.steps * self.dt

    @property
    def mass(self) -> float:
        """Of the machine and what its bucket carries [kg]."""
        return float(self.engine.content.model.body.mass[self.content.gauges.part].sum())

    @property
    def centre(self) -> np.ndarray:
        """Centre of mass of all of it [m]."""
        part = self.content.gauges.part
        mass = self.engine.content.model.body.mass[part]
        return np.asarray(mass @ self.state.pos[part] / mass.sum())

    @property
    def wheels(self) -> np.ndarray:
        """Loads, front left and right, rear left and right [N]."""
        return np.array([self[f"{name}.load"] for name in WHEELS])

    @property
    def speed(self) -> float:
        """Of the undercarriage, any direction [m/s]."""
        return float(np.linalg.norm(self.state.vel[self.content.gauges.hull, :3]))

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.outputs).all() and np.isfinite(self.poses).all())

    def contacts(self) -> dict[str, float]:
        """Normal force [N] by which each body is pressed, besides the wheels."""
        contact = self.engine.content.data.contact
        found: dict[str, float] = {}
        for c in range(int(contact.count[0])):
            body = self.engine.names[int(contact.body[c].max())]
            found[body] = found.get(body, 0.0) + float(contact.impulse[c, 0]) / self.dt
        return found

    def axis(self, body: str, along: tuple[float, float, float]) -> np.ndarray:
        """A direction of a body in the world."""
        w, x, y, z = self.state.quat[self.engine.index(body)]
        u, v = np.array([x, y, z]), np.asarray(along, float)
        return np.asarray(v + 2 * np.cross(u, np.cross(u, v) + w * v))

    @property
    def tilt(self) -> float:
        """Angle of the undercarriage's upright against the vertical [rad]."""
        return math.acos(min(max(float(self.axis("undercarriage", (0, 0, 1))[2]), -1.0), 1.0))

    def lead(self, seconds: float, levers: dict[str, float]) -> None:
        """Hold these levers for so long, all others at their defaults, with the parking brake on unless told."""
        self.let_go()
        self.hold(**{"parking": 1.0, **levers})
        self.run(seconds)

    def goto(self, at_most: float = 8.0, within: float = 0.01, **goals: float) -> bool:
        """Bring boom, stick, bucket, swing, blade, outriggers to angles [rad]; the parking brake is on."""
        lever = {
            "boom": ("right.y", -6.0),
            "stick": ("left.y", 6.0),
            "bucket": ("right.x", 5.0),
            "swing": ("left.x", -1.6),
            "blade": ("blade", 5.0),
            "outriggers": ("outriggers", 5.0),
        }
        self.let_go()
        self.hold(parking=1.0)

        def there() -> bool:
            off = {name: goal - self[f"{name}.angle"] for name, goal in goals.items()}
            for name, way in off.items():
                channel, gain = lever[name]
                self.hold(**{channel: min(max(gain * way, -1.0), 1.0)})
            return all(abs(way) < within for way in off.values())

        there()
        reached = self.run_until(there, at_most)
        self.let_go()
        self.hold(parking=1.0)
        return reached

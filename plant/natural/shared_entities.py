"""Which points and vectors make a body, and which of them bodies share (Luaces 2.1.1 and 5.4.1).

A joint says that a feature of one body (a point, an axis) is the same as one of the other. If both bodies can take
it among their four entities, it becomes one entity that they share, and nothing is left to write as an equation. What
the ground or a body that moves as it is told brings along is known. A body that is not yet spanned when all joints have
been asked gets entities of its own: its centre of mass if it has no point, and vectors perpendicular to what it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
SAME = 1e-9  # [-] two features nearer than this, by the size of the body, are one
SPANS = 0.05  # least singular value of the features of a body, each scaled to one


@dataclass
class Entity:
    """A point or a vector."""

    number: int
    users: set[int] = field(default_factory=set)  # bodies made of it
    owner: int | None = None  # body that tells it, None = it moves freely
    local: Vector = field(default_factory=lambda: np.zeros(4))  # in the owner's axes
    into: int | None = None  # the entity that it has become


@dataclass
class Frame:
    """A body: features in its own axes, from the centre of mass, each with its entity."""

    prescribed: bool
    size: float
    rows: list[Vector] = field(default_factory=list)  # 1 or 0 for point or vector, then where
    entity: list[int] = field(default_factory=list)


class Sharing:
    """All frames and entities of a mechanism on its way."""

    def __init__(self, prescribed: list[bool], sizes: list[float]) -> None:
        self.frames = [Frame(t, s) for t, s in zip(prescribed, sizes, strict=True)]
        self.entities: list[Entity] = []

    def find(self, number: int) -> int:
        """The entity that `number` has become."""
        while (into := self.entities[number].into) is not None:
            number = into
        return number

    def new(self) -> int:
        self.entities.append(Entity(len(self.entities)))
        return len(self.entities) - 1

    def share(self, a: int, feature_a: Vector, b: int, feature_b: Vector) -> bool:
        """Make a feature of body `a` and one of body `b` the same entity; False if that can not be."""
        if self.frames[a].prescribed and self.frames[b].prescribed:
            return True
        first, second = self._fits(a, feature_a), self._fits(b, feature_b)
        if first == _FULL or second == _FULL:
            return False
        x = self._adopt(a, feature_a, first)
        y = self._adopt(b, feature_b, second)
        return self._merge(x, y)

    def _scaled(self, body: int, row: Vector) -> Vector:
        """A feature in numbers of order one."""
        size = self.frames[body].size
        return np.array([row[0], *(row[1:] / size)]) if row[0] else row / np.linalg.norm(row[1:])

    def _fits(self, body: int, row: Vector) -> int:
        """Place of the feature among those of the body, _NEW if it would be one more, _FULL if there is no room."""
        frame = self.frames[body]
        mine = self._scaled(body, row)
        for k, other in enumerate(frame.rows):
            if np.abs(self._scaled(body, other) - mine).max() < SAME and other[0] == row[0]:
                return k
        if frame.prescribed:
            return _NEW
        rows = np.array([*(self._scaled(body, r) for r in frame.rows), mine])
        if len(rows) > 4 or np.linalg.svd(rows, compute_uv=False)[-1] < SPANS:
            return _FULL
        if len(rows) == 4 and not rows[:, 0].any():
            return _FULL  # four vectors have no place
        return _NEW

    def _adopt(self, body: int, row: Vector, place: int) -> int:
        frame = self.frames[body]
        if place >= 0:
            return self.find(frame.entity[place])
        number = self.new()
        entity = self.entities[number]
        if frame.prescribed:
            entity.owner, entity.local = body, row
        else:
            entity.users.add(body)
        frame.rows.append(row)
        frame.entity.append(number)
        return number

    def _merge(self, x: int, y: int) -> bool:
        if x == y:
            return True
        one, other = self.entities[x], self.entities[y]
        if one.users & other.users:
            return False  # a body would have it twice
        if one.owner is not None and other.owner is not None:
            return False  # both are prescribed, perhaps differently
        if other.owner is not None:
            one, other = other, one
        other.into = one.number
        one.users |= other.users
        other.users = set()
        return True

    def complete(self, body: int) -> None:
        """Entities of its own, until the body is spanned."""
        frame = self.frames[body]
        if not any(r[0] for r in frame.rows):
            self._adopt(body, np.array([1.0, 0.0, 0.0, 0.0]), _NEW)
        point = next(r for r in frame.rows if r[0])
        ways = [r[1:] - r[0] * point[1:] for r in frame.rows if r is not point]
        known = np.array([w / np.linalg.norm(w) for w in ways]).reshape(-1, 3)
        _, s, rest = np.linalg.svd(np.vstack([known, np.zeros((3, 3))]))
        rank = int((s > 1e-9).sum())
        for way in rest[rank:3]:
            self._adopt(body, np.array([0.0, *way]), _NEW)


_NEW, _FULL = -1, -2

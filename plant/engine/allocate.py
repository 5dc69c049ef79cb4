"""Allocation of the state and work arrays of an engine, with room for what may be added while it runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hilnode.core.struct import zeros
from plant import model
from plant.collision.volume.moments import new_regions
from plant.contact_law.model import new_foundation_force, new_response
from plant.engine import write
from plant.numeric.hash_table import new_table
from plant.sparse import block_ldl, ordering
from plant.world.world import World

COLLISIONS = 256  # entries that the log of collisions keeps


@dataclass(frozen=True)
class Room:
    """How many of each thing the arrays hold."""

    bodies: int
    joints: int
    actuators: int
    couplings: int
    springs: int
    contacts: int
    regions: int  # contacts by volume

    @property
    def rows(self) -> int:
        return self.actuators + self.springs + 3 * (self.contacts + self.regions) + 6 * self.joints

    @property
    def nodes(self) -> int:
        return self.bodies + self.joints + self.couplings

    @property
    def blocks(self) -> int:
        return 4 * self.nodes + 512 + 4 * min(self.contacts, 1024)

    @property
    def sketch(self) -> int:
        """Nodes of the largest island that is laid out for a direct solve."""
        return min(self.nodes, 2048)


def new_data(world: World, room: Room) -> model.Data:
    """State and work arrays, all zero but where the first step needs something else."""
    nb, nj, np_, nc, rows = room.bodies, room.joints, room.couplings, room.contacts, room.rows
    key, block_of = new_table(room.blocks + nc)
    islands = nb + 1
    return model.Data(
        state=zeros(
            model.State,
            {
                "pos": (nb, 3),
                "quat": (nb, 4),
                "angle": (nj, 2),
                **dict.fromkeys(("vel", "wrench", "field_wrench"), (nb, 6)),
            },
            nb,
        ),
        frame=zeros(
            model.Frames, {"rot": (nb, 3, 3), "inertia": (nb, 3, 3), "inverse": (nb, 3, 3), "momentum": (nb, 6)}, nb
        ),
        row=zeros(
            model.JointRows,
            {
                **dict.fromkeys(("ga", "gb"), (nj, 6, 6)),
                **dict.fromkeys(("error", "g_ddot", "force", "drive", "goal", "rest", "rest_set"), (nj, 6)),
                **dict.fromkeys(("reaction", "slide", "spin_axis"), (nj, 3)),
                "axes": (nj, 3, 3),
                "arm": (nj, 2, 3),
            },
            nj,
        ),
        coupled=zeros(model.CouplingRows, {"g": (np_, ordering.ENDS, 6)}, np_),
        contact=zeros(
            model.Contacts,
            {
                **dict.fromkeys(("body", "old_body"), (nc, 2)),
                **dict.fromkeys(("count", "new", "old_count"), (1,)),
                **dict.fromkeys(("point", "normal", "impulse", "tangent", "stretch"), (nc, 3)),
                **dict.fromkeys(("old_impulse", "old_tangent", "old_stretch"), (nc, 3)),
            },
            nc,
        ),
        log=zeros(model.Log, {"count": (1,), "body": (COLLISIONS, 2), "point": (COLLISIONS, 3)}, COLLISIONS),
        warm=model.Warm(*new_table(nc)),
        region=new_regions(room.regions),
        response=new_response(),
        foundation=new_foundation_force(),
        bounded=zeros(
            model.Rows,
            {"count": (1,), "ga": (rows, 6), "gb": (rows, 6), "back": (rows, 12), "kept": (room.actuators,)},
            rows,
        ),
        target=zeros(model.Targets, {}, room.actuators),
        chamber=write.chambers(world),
        graph=model.Graph(
            dirty=np.ones(1, np.int64),
            body_node=np.full(nb, -1, np.int64),
            joint_node=np.full(nj, -1, np.int64),
            coupling_node=np.full(np_, -1, np.int64),
            owner=_ints(room.nodes),
            block=np.full((max(1, nj + np_), ordering.ENDS), -1, np.int64),
            over=np.zeros((max(1, nj + np_), ordering.ENDS), np.int64),
            root=_ints(nb),
            island=np.full(nb, -1, np.int64),
            islands=_ints(3),
            first=_ints(islands + 1),
            row_first=_ints(islands + 1),
            solver=_ints(islands),
            strained=_ints(islands),
            coupled=_ints(islands),
            members=_ints(islands),
            loops=_ints(islands),
            local=_ints(room.nodes),
            list=_ints(room.nodes),
            head=_ints(islands),
            next=np.full(room.nodes, -1, np.int64),
            pair_head=_ints(islands),
            pair_next=_ints(room.springs + nc),
            key=key,
            block_of=block_of,
        ),
        sketch=ordering.new_sketch(room.sketch),
        pattern=ordering.new_pattern(room.nodes, room.blocks, 8 * room.blocks),
        factor=block_ldl.new_factor(room.nodes, room.blocks),
        x=np.zeros((room.nodes, 6)),
        scratch=np.zeros((10, 6)),
        status=_ints(model.Status.COUNT),
    )


def _ints(n: int) -> NDArray[np.int64]:
    return np.zeros(n, np.int64)

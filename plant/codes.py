"""Codes shared by worlds and kernels: kinds of bodies, joints, rows, steppers and solvers."""

from __future__ import annotations

from enum import IntEnum


class BodyKind(IntEnum):
    """How a body moves."""

    DYNAMIC = 0
    KINEMATIC = 1  # by its given velocity
    STATIC = 2
    ABSENT = 3  # its place is reserved, or it has been taken away


class Turning(IntEnum):
    """How a joint's angular rows are written: by how many turning axes it leaves free."""

    ALL_FREE = 0  # ball: no angular row
    NONE_FREE = 1  # fixed, prismatic: three rows, vector part of the relative quaternion
    ONE_FREE = 2  # hinge: axis z of both frames stays parallel, two rows
    TWO_FREE = 3  # universal: x of A stays perpendicular to y of B, one row


class Bound(IntEnum):
    """What a bounded row is for."""

    MOTOR = 0
    LIMIT = 1
    FRICTION = 2  # in a joint
    SPRING = 3  # on a free axis of a joint, or between two points
    LOCK = 4  # a locked axis of a joint, in an island that is solved by iteration
    CONTACT = 5  # normal; its two friction rows follow
    TANGENT = 6
    HYDRAULIC = 7  # a cylinder with pressures, on a slide
    SMOOTH = 8  # normal of a contact with a force law; its two tangents follow
    SMOOTH_TANGENT = 9  # and what else a force law says of the contact: spinning and rolling
    GUIDE = 10  # a free axis of a joint that moves as it is told; in natural coordinates only


class Stepper(IntEnum):
    """How joint rows are written: at velocity level, or in the other core."""

    SPOOK = 0  # regularised and stabilised, Nordberg and Servin eq. 9
    LINEARISED = 1  # G v = -g / h, Koerner eq. 2.13
    PROJECTED = 2  # G v = 0, then positions are projected, Koerner eq. 2.14 and 2.15
    ALI3P = 3  # natural coordinates, index-3 augmented Lagrangian: another core, see `natural`


class Solver(IntEnum):
    """How the rows of an island are solved."""

    DIRECT = 0
    ITERATIVE = 1  # projected Gauss-Seidel
    GRADIENT = 2  # accelerated projected gradient
    SPLIT = 3  # joints and normals direct, friction by iteration
    AUTO = 4  # direct, unless an island has too many loops for that

"""User-facing description of a machine: bodies, joints, shapes and actuators by name, with units."""

from plant.world.checks import WorldError as WorldError
from plant.world.world import World as World

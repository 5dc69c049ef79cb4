"""Physics: model, state, step. Knows no time of day, no device, no network, and no file but its own tables and meshes.

A user describes a machine with `World` and shapes, compiles it with `compile_world`, and hands it to the node with
`as_plant`; a plant of one's own is a `Plant` with tasks compiled by `step_function`. ARCHITECTURE.md names the rooms.
"""

from typing import TYPE_CHECKING

from hilnode.core.lazy import lazy_names

if TYPE_CHECKING:
    from plant.abi import NOT_FINITE as NOT_FINITE
    from plant.abi import OK as OK
    from plant.abi import Arrows as Arrows
    from plant.abi import Collisions as Collisions
    from plant.abi import Grid as Grid
    from plant.abi import Plant as Plant
    from plant.abi import Props as Props
    from plant.abi import Task as Task
    from plant.abi import step_function as step_function
    from plant.collision.narrowphase.field import set_height as set_height
    from plant.collision.shape.shapes import Box as Box
    from plant.collision.shape.shapes import Capsule as Capsule
    from plant.collision.shape.shapes import Cone as Cone
    from plant.collision.shape.shapes import Cylinder as Cylinder
    from plant.collision.shape.shapes import Field as Field
    from plant.collision.shape.shapes import Hull as Hull
    from plant.collision.shape.shapes import Link as Link
    from plant.collision.shape.shapes import Mesh as Mesh
    from plant.collision.shape.shapes import Plane as Plane
    from plant.collision.shape.shapes import Sphere as Sphere
    from plant.collision.shape.shapes import Torus as Torus
    from plant.engine.as_plant import as_plant as as_plant
    from plant.engine.compile import Spare as Spare
    from plant.engine.compile import compile_world as compile_world
    from plant.engine.live import remove_body as remove_body
    from plant.engine.live import set_heights as set_heights
    from plant.engine.live import switch_joint as switch_joint
    from plant.engine.live import take_in as take_in
    from plant.engine.queries import collisions as collisions
    from plant.engine.queries import contacts as contacts
    from plant.engine.queries import overlap as overlap
    from plant.engine.queries import ray as ray
    from plant.natural.builder import Options as Options
    from plant.natural.integrators import generalized_alpha as generalized_alpha
    from plant.natural.model import Report as Report
    from plant.reduced.compile import compile_tree as compile_tree
    from plant.world.checks import WorldError as WorldError
    from plant.world.world import World as World

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "plant.abi": "Arrows Collisions Grid NOT_FINITE OK Plant Props Task step_function",
            "plant.collision.narrowphase.field": "set_height",
            "plant.collision.shape.shapes": "Box Capsule Cone Cylinder Field Hull Link Mesh Plane Sphere Torus",
            "plant.engine.as_plant": "as_plant",
            "plant.engine.compile": "Spare compile_world",
            "plant.engine.live": "remove_body set_heights switch_joint take_in",
            "plant.engine.queries": "collisions contacts overlap ray",
            "plant.natural.builder": "Options",
            "plant.natural.integrators": "generalized_alpha",
            "plant.natural.model": "Report",
            "plant.reduced.compile": "compile_tree",
            "plant.world.checks": "WorldError",
            "plant.world.world": "World",
        },
    )

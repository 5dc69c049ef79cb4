"""`hilnode mesh`: check a mesh file before it is used in a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from hilnode.cli.common import err, fail, out


def mesh(
    file: Annotated[Path, typer.Argument(help="An STL, OBJ, glTF or GLB file.")],
    density: Annotated[float, typer.Option("--density", min=1e-6, help="Of the solid [kg/m^3].")] = 7850.0,
    scale: Annotated[float, typer.Option("--scale", min=1e-9, help="The file's unit [m]: 0.001 for mm.")] = 1.0,
    surface: Annotated[bool, typer.Option("--open", help="A surface with open edges: ground, a wall.")] = False,
) -> None:
    """Check a mesh file and tell its size, mass, centre and inertia.

    A mesh with holes, or inside out, is refused with the triangle and what to do about it.
    """
    from plant.collision.shape.shapes import mesh_from_file

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    try:
        with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
            task = bar.add_task(f"reading {file.name}", total=1.0)
            made = mesh_from_file(
                file,
                lambda part, what: bar.update(task, completed=part, description=what, refresh=True),
                scale=scale,
                closed=not surface,
            )
            mass, centre, inertia = (0.0, None, None) if surface else made.mass_properties(density)
    except (ValueError, OSError, ImportError) as error:
        fail(error)
    size = made.vertices.max(0) - made.vertices.min(0)
    _print(f"{len(made.triangles)} triangles, {len(made.vertices)} vertices, {_numbers(size)} m")
    if centre is None or inertia is None:
        _print("an open surface has no mass")
        return
    _print(f"mass     {mass:.6g} kg at {density:g} kg/m^3, volume {mass / density:.6g} m^3")
    _print(f"centre   {_numbers(centre)} m")
    for name, row in zip(("inertia ", "        ", "        "), inertia, strict=True):
        _print(f"{name} {_numbers(row)} kg m^2")


def _print(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _numbers(values: object) -> str:
    return "  ".join(f"{float(x):.6g}" for x in values)  # type: ignore[attr-defined]

"""`hilnode mesh`: look at a mesh file before a machine is made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

out, err = Console(), Console(stderr=True)


def _fail(error: object) -> NoReturn:
    err.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def mesh(
    file: Annotated[Path, typer.Argument(help="An STL, OBJ, glTF or GLB file.")],
    density: Annotated[float, typer.Option("--density", min=1e-6, help="Of the solid [kg/m^3].")] = 7850.0,
    scale: Annotated[float, typer.Option("--scale", min=1e-9, help="The file's unit [m]: 0.001 for mm.")] = 1.0,
    surface: Annotated[bool, typer.Option("--open", help="A surface with open edges: ground, a wall.")] = False,
) -> None:
    """Check a mesh file and tell its size, mass, centre and inertia.

    A mesh with holes, or inside out, is refused with the triangle and what to do about it.
    """
    from plant.collide.shapes import mesh_from_file

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
        _fail(error)
    size = made.vertices.max(0) - made.vertices.min(0)
    _say(f"{len(made.triangles)} triangles, {len(made.vertices)} vertices, {_numbers(size)} m")
    if centre is None or inertia is None:
        _say("an open surface has no mass")
        return
    _say(f"mass     {mass:.6g} kg at {density:g} kg/m^3, volume {mass / density:.6g} m^3")
    _say(f"centre   {_numbers(centre)} m")
    for name, row in zip(("inertia ", "        ", "        "), inertia, strict=True):
        _say(f"{name} {_numbers(row)} kg m^2")


def _say(line: str) -> None:
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def _numbers(values: object) -> str:
    return "  ".join(f"{float(x):.6g}" for x in values)  # type: ignore[attr-defined]

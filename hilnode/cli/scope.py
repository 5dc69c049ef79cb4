"""`hilnode scope`: signals of a running node at full rate, around a trigger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilnode.cli.common import COMMANDS, checked_endpoint, err, fail, out
from hilnode.shared.codes import ExitCode

if TYPE_CHECKING:
    from bridge.scope.capture import Capture, Shot
    from bridge.scope.source import Source

LEAST_HEIGHT = 24
MOST_ROWS = 10_000_000  # of one shot


def scope(
    signals: Annotated[
        list[str], typer.Argument(metavar="SIGNAL", help="Names of signals, as hilnode monitor shows them.")
    ],
    trigger: Annotated[
        str | None,
        typer.Option(
            "--trigger", metavar="TEXT",
            help="'SIGNAL > 0.5' (or <, >=, <=, ==, !=): the first row in which it is so. 'SIGNAL rising 0.5', "
            "'SIGNAL falling 0.5': the first row after it has crossed. 'state == tripped': the node's state.",
        ),
    ] = None,
    pre: Annotated[
        float | None,
        typer.Option("--pre", min=0.0, metavar="S", help="Seconds before the trigger. Default: a tenth of --for."),
    ] = None,
    for_s: Annotated[float, typer.Option("--for", min=0.0, metavar="S", help="Seconds from the trigger on.")] = 1.0,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Draw it into a file.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write every row into a file.")] = None,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", min=0.0, metavar="S", help="Give up if there is no trigger; exit code 1."),
    ] = None,
    endpoint: Annotated[
        str, typer.Option("--endpoint", metavar="ENDPOINT", help="Where the node takes commands (bridge.commands).")
    ] = COMMANDS,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Your key, where the node asks for one (hilnode keys).")
    ] = None,
) -> None:  # fmt: skip
    """Look at signals of a running node at full rate, around a trigger: every tick, to the tick.

    [bold]hilnode scope pendulum.elbow.angle[/bold] draws the next second in the terminal, with two cursors.
    [bold]hilnode scope pendulum.elbow.angle --trigger "pendulum.elbow.angle rising 0.5" --pre 0.2[/bold]
    waits for it. With [bold]--png[/bold] or [bold]--csv[/bold] it asks nothing and ends by itself: for scripts.

    As on any scope, the trigger is watched for once there is enough history for --pre.
    """
    from bridge.client.link import client_key
    from bridge.protocol.keys import KeyFileError
    from bridge.protocol.operations import NodeError
    from bridge.scope.capture import Capture
    from bridge.scope.source import Source
    from bridge.scope.trigger import Trigger, TriggerError
    from hilnode.core.signals import UnknownName

    _check_files(png, csv)
    try:
        wanted = Trigger.parse(trigger) if trigger else None
        source = Source(checked_endpoint(endpoint), client_key(key))
    except TriggerError as error:
        fail(error, ExitCode.BAD_CONFIG)
    except (KeyFileError, NodeError) as error:
        fail(error)
    try:
        per_second = 1e9 / source.schema.dt_ns
        before = for_s / 10 if pre is None else pre
        rows, earlier = round(for_s * per_second), round(before * per_second)
        if rows + earlier > MOST_ROWS:
            fail(
                f"--pre and --for: {rows + earlier} rows are too many for one shot, at most {MOST_ROWS}",
                ExitCode.BAD_CONFIG,
            )
        capture = Capture(source.schema, list(dict.fromkeys(signals)), rows=rows, pre=earlier, trigger=wanted)
        if png or csv or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _for_scripts(source, capture, timeout, png, csv)
        else:
            _on_screen(source, capture)
    except UnknownName as error:
        fail(error, ExitCode.BAD_CONFIG)
    finally:
        source.close()


def _check_files(png: Path | None, csv: Path | None) -> None:
    """Refuse now what could not be saved after an hour of waiting."""
    from bridge.scope.save import PlotUnavailable, check_picture

    for option, path in (("--png", png), ("--csv", csv)):
        if path and not path.absolute().parent.is_dir():
            fail(f"{option} {path}: there is no folder {path.absolute().parent}", ExitCode.BAD_CONFIG)
    try:
        if png:
            check_picture(png)
    except PlotUnavailable as error:
        fail(error)
    except ValueError as error:
        fail(f"--png {error}", ExitCode.BAD_CONFIG)


def _for_scripts(source: Source, capture: Capture, timeout: float | None, png: Path | None, csv: Path | None) -> None:
    """Take one shot, save it, and say in one line what it is; draw it as text if it is not saved."""
    from bridge.scope.save import save_csv, save_png, title
    from bridge.scope.source import ScopeError, take

    try:
        take(source, capture, timeout)
    except ScopeError as error:
        fail(error)
    except KeyboardInterrupt:
        fail("no trigger came before Ctrl-C", 130)
    shot = capture.shot()
    try:
        if csv:
            save_csv(shot, csv)
        if png:
            save_png(shot, png)
    except OSError as error:
        fail(f"{error.filename or csv or png}: {error.strerror}")
    if png or csv:
        err.print(title(shot), markup=False, highlight=False, soft_wrap=True)
    else:
        _print(shot)


def _print(shot: Shot) -> None:
    from bridge.scope.drawing import draw

    for line in draw(shot, out.width, max(LEAST_HEIGHT, 6 * len(shot.units))):
        out.print(line, soft_wrap=True)


def _on_screen(source: Source, capture: Capture) -> None:
    try:
        from bridge.scope.app import Scope
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        fail("the scope's screen needs textual, which is not installed: pip install hilnode[monitor], or use --png")
    Scope(source, capture).run()

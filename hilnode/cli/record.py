"""`hilnode export`, `replay` and `rerun`: what can be done with a recorded run."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hilnode.cli.common import err, fail, out, say
from hilnode.shared.codes import ExitCode

if TYPE_CHECKING:
    from bridge.record.run_file import Run

SHOWN_AFTER = 2.0  # [s] what is quicker needs no progress
SHOWN_EVERY = 5.0  # [s] where there is no terminal

RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or its rows.mcap.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (export, replay, rerun):
        app.command()(command)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Run]:
    """The recording, or one clear line about why it cannot be read."""
    try:
        from bridge.record.mcap_scan import RecordingError
        from bridge.record.run_file import Run
    except ModuleNotFoundError as error:
        fail(f"recordings need the package {error.name}: pip install 'hilnode[record]'")
    try:
        with Run(path) as run:
            yield run
    except (RecordingError, OSError) as error:
        fail(error)


class _Progress:
    """Says how far it is, once something takes longer than two seconds."""

    def __init__(self, what: str) -> None:
        self._what, self._began, self._said = what, time.monotonic(), 0.0
        self._status = err.status(what) if err.is_terminal else None
        self._shown = False

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if now - self._began < SHOWN_AFTER:
            return
        line = f"{self._what} {min(100.0, 100 * share):.0f} %"
        if self._status:
            if not self._shown:
                self._status.start()
                self._shown = True
            self._status.update(line)
        elif now - self._said > SHOWN_EVERY:
            self._said = now
            say(line)

    def __enter__(self) -> Callable[[float], None]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status and self._shown:
            self._status.stop()


def export(
    run: RunPath,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="parquet, csv or mdf4.")],
    signals: Annotated[
        list[str] | None,
        typer.Option("--signals", metavar="NAME", help="Only these, by name or pattern; may be given several times."),
    ] = None,
    start: Annotated[
        float | None, typer.Option("--from", min=0, metavar="S", help="Seconds since the first row.")
    ] = None,
    until: Annotated[
        float | None, typer.Option("--until", min=0, metavar="S", help="Seconds since the first row.")
    ] = None,
    target: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Default: rows.* beside the run.")
    ] = None,
) -> None:
    """Export a recording to Parquet, CSV or MDF4, with names and units.

    [bold]hilnode export runs/bench-1 --to parquet[/bold] writes runs/bench-1/rows.parquet,
    [bold]--signals 'pendulum.*' --from 10 --until 20[/bold] only ten seconds of what is so named.
    """
    with _opened(run) as recording:
        from bridge.record.export import SUFFIX, ExportError
        from bridge.record.export import export as write
        from hilnode.core.signals import UnknownName

        if to not in SUFFIX:
            fail(f"--to {to}: must be {', '.join(SUFFIX)}", ExitCode.BAD_CONFIG)
        path = target or recording.path.with_suffix(SUFFIX[to])
        try:
            with _Progress(f"writing {path}") as progress:
                rows = write(recording, to, path, signals=signals or (), start_s=start, end_s=until, progress=progress)
        except (ExportError, UnknownName) as error:
            fail(error)
        for note in recording.notes:
            say(f"note: {note}")
        out.print(f"{rows} rows in {path}", highlight=False, soft_wrap=True)


def replay(
    run: RunPath,
    speed: Annotated[float, typer.Option("--speed", help="2 is double speed, -1 is backwards.")] = 1.0,
    start: Annotated[float | None, typer.Option("--from", min=0, metavar="S", help="Where to begin.")] = None,
    loop: Annotated[bool, typer.Option("--loop", help="Begin anew at the end.")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Wait for the command play before the first row.")] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Stay at the end and wait for commands.")] = False,
    publish: Annotated[str, typer.Option("--publish", metavar="ADDRESS", help="Default: that of the run.")] = "",
    commands: Annotated[str, typer.Option("--commands", metavar="ADDRESS", help="Likewise.")] = "",
    keys: Annotated[str | None, typer.Option("--keys", metavar="DIR", help="As bridge.keys.")] = None,
) -> None:
    """Publish a recording as if it happened now, for the same clients and displays.

    [bold]hilnode replay runs/bench-1 --speed 0.5[/bold] plays it at half speed. While it plays,
    Node("tcp://127.0.0.1:9873") takes n.pause(), n.play(), n.set_speed(-1) and n.seek(12.5).
    """
    with _opened(run) as recording:
        from bridge.protocol.endpoints import BridgeError
        from bridge.protocol.keys import KeyFileError
        from bridge.record.player import Player
        from bridge.record.replay import Replay
        from hilnode.config.config import Config, ConfigError, overlay
        from hilnode.config.tables.bridge import BridgeTable
        from hilnode.node.ports import PortBusy, PortRefused, check_free

        try:
            then = recording.about["config"].get("bridge", {})  # its own addresses, unless others are given
            given = {
                "bridge.publish": publish or then.get("publish"),
                "bridge.commands": commands or then.get("commands"),
                "bridge.keys": keys,
            }
            table: BridgeTable = overlay(Config(), **given).bridge
            check_free("--publish", table.publish)
            check_free("--commands", table.commands)
            player = Player(recording, speed=speed, start_s=start, loop=loop)
            player.playing = not paused
            folder = Path(table.keys) if table.keys else None
            server = Replay(recording, player, publish=table.publish, commands=table.commands, keys=folder, say=say)
        except (ConfigError, ValueError) as error:
            fail(error, ExitCode.BAD_CONFIG)
        except PortBusy as error:
            fail(error, ExitCode.BUSY)
        except (BridgeError, KeyFileError, PortRefused) as error:
            fail(error)
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, lambda *_: server.end())
        for note in recording.notes:
            say(f"note: {note}")
        say(f"{player.duration_s:.1f} s of {recording.about['node']} on {table.publish}, commands on {table.commands}")
        server.work(stay=stay)


def rerun(run: RunPath) -> None:
    """Run a recording's plant again with the recorded inputs, and compare every output bit by bit.

    [bold]hilnode rerun runs/bench-1[/bold] ends with 0 if all is the same, else it names the first difference.
    """
    with _opened(run) as recording:
        from pydantic import ValidationError

        from hilnode.config.config import ConfigError
        from hilnode.core.registry import KindError
        from hilnode.report import rerun as again

        try:
            with _Progress("running it again") as progress:
                verdict = again.rerun(recording, progress)
        except (again.CannotRerun, ConfigError, KindError, ValidationError) as error:
            fail(error)
        for line in again.explain(recording, verdict):
            out.print(line, markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(int(ExitCode.OK if verdict.identical else ExitCode.REFUSED))

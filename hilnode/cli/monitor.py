"""`hilnode monitor`: a running node in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilnode.cli.common import COMMANDS, checked_endpoint, fail


def monitor(
    endpoint: Annotated[
        str, typer.Argument(metavar="ENDPOINT", help="Where the node takes commands: bridge.commands of its config.")
    ] = COMMANDS,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Your key, where the node asks for one (hilnode keys).")
    ] = None,
) -> None:
    """Watch a running node in the terminal, and operate it: values, timing, drivers, events.

    [bold]hilnode monitor[/bold] shows the node on this PC,
    [bold]hilnode monitor tcp://lab-pc:9873 --key anna.key.toml[/bold] one elsewhere; so does
    [bold]ssh -t lab-pc hilnode monitor[/bold]. It reconnects by itself.

    Type part of a name to see only those signals; Esc shows all. F2 arm, F3 run, F4 pause, F5 resume, F6 clear,
    Enter force the chosen signal, Del release it, [bold]F9 trip at once[/bold] (or Ctrl-T), Ctrl-Q quit.
    """
    try:
        from bridge.monitor.app import watch
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        fail("the monitor needs textual, which is not installed: pip install hilnode[monitor]")
    from bridge.client.link import client_key
    from bridge.protocol.keys import KeyFileError

    try:
        watch(checked_endpoint(endpoint), client_key(key))
    except KeyFileError as error:
        fail(error)

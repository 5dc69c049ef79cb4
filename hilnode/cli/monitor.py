"""`hilnode monitor`: a running node in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

err = Console(stderr=True)

COMMANDS = "tcp://127.0.0.1:9873"
"""Where a node takes commands unless its config says otherwise."""


def fail(error: object, code: int = 1) -> NoReturn:
    """One clear line and an exit code."""
    err.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(code)


def checked_endpoint(endpoint: str) -> str:
    """An address that ZeroMQ can connect to; `lab-pc` alone gets the usual port."""
    if "://" not in endpoint:
        endpoint = f"tcp://{endpoint}" if ":" in endpoint else f"tcp://{endpoint}:9873"
    if endpoint.startswith("tcp://") and not endpoint.rpartition(":")[2].isdigit():
        fail(f"{endpoint}: write tcp://HOST:PORT, such as {COMMANDS} (bridge.commands of the node's config)", 2)
    return endpoint


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
    from bridge.keys import KeyFileError
    from bridge.link import client_key

    try:
        watch(checked_endpoint(endpoint), client_key(key))
    except KeyFileError as error:
        fail(error)

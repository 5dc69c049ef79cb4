"""Shared by all commands: the two consoles, the way to fail, the default endpoint."""

from __future__ import annotations

import contextlib
from typing import NoReturn

import typer
from rich.console import Console

from hilnode.shared.codes import ExitCode

out = Console()
err = Console(stderr=True)

COMMANDS = "tcp://127.0.0.1:9873"
"""Where a node takes commands unless its config says otherwise."""


def fail(error: object, code: int = ExitCode.REFUSED) -> NoReturn:
    """One clear line on stderr and an exit code."""
    err.print(str(error), style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(int(code))


def say(line: str) -> None:
    """A line for people; one that cannot be written (a closed terminal, `| head`) is no reason to end a run."""
    with contextlib.suppress(OSError, SystemExit):
        err.print(line, markup=False, highlight=False, soft_wrap=True)


def checked_endpoint(endpoint: str) -> str:
    """An address that ZeroMQ can connect to; `lab-pc` alone gets the usual port."""
    if "://" not in endpoint:
        endpoint = f"tcp://{endpoint}" if ":" in endpoint else f"tcp://{endpoint}:9873"
    if endpoint.startswith("tcp://") and not endpoint.rpartition(":")[2].isdigit():
        fail(
            f"{endpoint}: write tcp://HOST:PORT, such as {COMMANDS} (bridge.commands of the node's config)",
            ExitCode.BAD_CONFIG,
        )
    return endpoint

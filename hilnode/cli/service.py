"""`hilnode install-service`: start a node when the PC boots."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path
from typing import Annotated

import typer

from hilnode.cli.common import fail, out


def install_service(
    config: Annotated[Path, typer.Argument(help="The config to run.")],
    user: Annotated[str | None, typer.Option("--user", help="Who runs it. Default: you.")] = None,
    show: Annotated[bool, typer.Option("--print", help="Only print the unit.")] = False,
) -> None:
    """Make a systemd unit that runs a config from the start of the PC on.

    [bold]sudo hilnode install-service bench.toml --user lab[/bold], then
    [bold]sudo systemctl enable --now hilnode-bench[/bold]. systemctl status shows how it is doing.
    """
    from hilnode.config.config import ConfigError, load
    from hilnode.node.systemd import UNITS, unit, unit_name

    path = config.resolve()
    try:
        load(path)
    except ConfigError as error:
        fail(error)
    text = unit(path, user or getpass.getuser(), path.parent)
    if show:
        out.print(text, markup=False, highlight=False, soft_wrap=True, end="")
        return
    target = UNITS / unit_name(path)
    try:
        target.write_text(text)
    except OSError as error:
        fail(f"{target}: {error.strerror}; run it with sudo, or see the unit with --print")
    subprocess.run(["systemctl", "daemon-reload"], check=False, capture_output=True)
    out.print(f"{target}\nstart it: sudo systemctl enable --now {target.stem}", highlight=False, soft_wrap=True)

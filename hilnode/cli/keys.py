"""`hilnode keys`: manage the keys of those who may connect from another PC."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hilnode.cli.common import fail, out

keys = typer.Typer(
    help="Keys for clients on other PCs.\n\n"
    "[bold]hilnode keys new anna --role operate[/bold] makes keys/anna.key.toml. Carry it to anna's PC by hand, write "
    'bridge.keys = "keys" into the config, and she connects with Node("tcp://lab-pc:9873", key="anna.key.toml").',
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Folder = Annotated[Path, typer.Option("--folder", help="Where the keys are: bridge.keys of the config.")]


@keys.command()
def new(
    name: Annotated[str, typer.Argument(help="Whom it is for, such as anna or display-2.")],
    role: Annotated[str, typer.Option("--role", help="watch, operate or admin.")] = "watch",
    folder: Folder = Path("keys"),
) -> None:
    """Let somebody in: make the key file for their PC."""
    from bridge.protocol.keys import KeyFileError, Keyring
    from bridge.protocol.operations import Role

    if role.upper() not in Role.__members__:
        fail(f"--role {role}: must be {', '.join(r.name.lower() for r in Role)}")
    try:
        path = Keyring(folder).admit(name, Role[role.upper()])
    except (KeyFileError, OSError) as error:
        fail(error)
    out.print(f"{path}: carry it to {name}'s PC; it is secret. {name} may {role}.", highlight=False, soft_wrap=True)


@keys.command("list")
def list_keys(folder: Folder = Path("keys")) -> None:
    """Show who is let in."""
    from bridge.protocol.keys import KeyFileError, Keyring

    try:
        guests = Keyring(folder).guests()
    except KeyFileError as error:
        fail(error)
    for guest in guests.values():
        out.print(f"{guest.name:<20} {guest.role.name.lower():<8} {guest.public}", markup=False, highlight=False)
    if not guests:
        out.print(f"nobody is let in by {folder}; hilnode keys new NAME makes a key", highlight=False)


@keys.command()
def revoke(name: Annotated[str, typer.Argument(help="Whose key to revoke.")], folder: Folder = Path("keys")) -> None:
    """Revoke a client's key: its requests are refused within two seconds."""
    from bridge.protocol.keys import KeyFileError, Keyring

    try:
        Keyring(folder).revoke(name)
    except (KeyFileError, OSError) as error:
        fail(error)
    out.print(f"{name} is no longer let in", highlight=False)

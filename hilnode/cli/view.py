"""`hilnode view`: the page of a node, or of a replay, served on any PC."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import signal
import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from hilnode.cli.common import COMMANDS, checked_endpoint, fail, out
from hilnode.shared.codes import ExitCode


def view(
    endpoint: Annotated[
        str, typer.Argument(metavar="ENDPOINT", help="Where the node takes commands: bridge.commands of its config.")
    ] = COMMANDS,
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS", help="Where browsers connect.")
    ] = "http://127.0.0.1:8081",
    key: Annotated[
        Path | None, typer.Option("--key", metavar="FILE", help="Your key, where the node asks for one (hilnode keys).")
    ] = None,
    token: Annotated[
        str, typer.Option("--token", help="Secret that a page needs. Beyond this PC one is made if none is given.")
    ] = "",
    role: Annotated[str, typer.Option("--role", help="What a page may do at most: watch, operate or admin.")] = "watch",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve the page of a node that runs elsewhere, or of a replay, to browsers.

    [bold]hilnode view tcp://lab-pc:9873 --key anna.key.toml --open[/bold] shows that node here;
    [bold]hilnode view --listen http://0.0.0.0:8081 --role operate[/bold] lets other PCs in, with a token.
    Ctrl-C ends it.
    """
    try:
        from bridge.web.server import AddressTaken, Options, WebServer
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "websockets":
            raise
        fail("the page needs websockets, which is not installed: pip install 'hilnode[web]'")
    from bridge.client.link import client_key
    from bridge.protocol.keys import KeyFileError
    from bridge.protocol.operations import Role
    from hilnode.config.config import Config, ConfigError, overlay

    if role.upper() not in Role.__members__:
        fail(f"--role {role}: must be {', '.join(r.name.lower() for r in Role)}", ExitCode.BAD_CONFIG)
    if not token and not _is_here(listen):
        token = secrets.token_urlsafe(24)
    try:
        table = overlay(Config(), **{"web.address": listen, "web.token": token or None}).web
        own = client_key(key)
    except ConfigError as error:
        fail(error, ExitCode.BAD_CONFIG)
    except KeyFileError as error:
        fail(error)
    options = Options(table.address, checked_endpoint(endpoint), own, token, Role[role.upper()])
    page = f"{table.address}/" + (f"#token={token}" if token else "")
    ending = threading.Event()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: ending.set())

    def ready() -> None:
        out.print(f"the page is at {page}", markup=False, highlight=False, soft_wrap=True)
        if open_page:
            webbrowser.open(page)

    async def serve() -> None:
        await WebServer(options).work(ready, ending.is_set)

    try:
        asyncio.run(serve())
    except AddressTaken as error:
        fail(error, ExitCode.BUSY)


def _is_here(address: str) -> bool:
    """Whether only programs on this PC can reach it."""
    host = address.removeprefix("http://").rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

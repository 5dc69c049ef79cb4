"""Checks that the keys named by a config exist, so that a wrong folder is reported before anything starts."""

from __future__ import annotations

from pathlib import Path

from drivers.base import OptionError
from hilnode.config.config import Config


def check_keys(config: Config) -> None:
    """Raise OptionError if the bridge could not read its keys."""
    folder = config.bridge.keys
    if not config.bridge.enabled or not folder:
        return
    from bridge.protocol.keys import KeyFileError, Keyring  # needs ZeroMQ, which a node without keys has no use for

    ring = Keyring(Path(folder))
    try:
        ring.own()
        ring.guests()
    except KeyFileError as error:
        raise OptionError(f"bridge.keys = {folder!r}: {error}") from error

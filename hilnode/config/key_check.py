"""Whether the keys that a config names are there: a wrong folder is to be told before anything is started."""

from __future__ import annotations

from pathlib import Path

from drivers.base import OptionError
from hilnode.config import Config


def check_keys(config: Config) -> None:
    """Raise OptionError if the bridge could not read its keys."""
    folder = config.bridge.keys
    if not config.bridge.enabled or not folder:
        return
    from bridge.keys import KeyFileError, Keyring  # needs ZeroMQ, which a node without keys has no use for

    ring = Keyring(Path(folder))
    try:
        ring.own()
        ring.guests()
    except KeyFileError as error:
        raise OptionError(f"bridge.keys = {folder!r}: {error}") from error

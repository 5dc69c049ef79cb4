"""The folder of a run: a new one for each run, and `run.json`, which says what ran, where and when."""

from __future__ import annotations

import json
import os
import platform
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hilnode import __version__
from hilnode.config.config import Config
from hilnode.shared.timinglog import FILE_NAME

if TYPE_CHECKING:
    from hilnode.node.node import Node


class FolderUsed(ValueError):
    """The folder for this run's files already holds a run."""


def new_directory(config: Config, out: Path | None) -> Path:
    """Where this run's files go: `out`, or a new folder named by node and time."""
    if out:
        return out
    return Path(config.log.directory) / f"{config.node.name}-{datetime.now():%Y%m%d-%H%M%S}"


def write_run_file(node: Node) -> None:
    """What ran, where and when, into run.json; FolderUsed if the folder holds a run already."""
    if not node.directory:
        return
    node.directory.mkdir(parents=True, exist_ok=True)
    if (node.directory / FILE_NAME).exists() or (node.directory / "rows.mcap").exists():
        raise FolderUsed(f"{node.directory} holds an earlier run: choose another folder (--out) or move it away")
    about = {
        "version": __version__,
        "started": datetime.now().astimezone().isoformat(timespec="seconds"),
        "started_monotonic_ns": time.monotonic_ns(),
        "machine": {"host": platform.node(), "kernel": platform.release(), "cpus": os.cpu_count()},
        "config": node.config.model_dump(mode="json", by_alias=True),
        "schema": node.schema.as_dict(),
    }
    (node.directory / "run.json").write_text(json.dumps(about, indent=1) + "\n")

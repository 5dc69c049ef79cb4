"""The process of the ECU lane. It may die and come back: the inputs go stale meanwhile, as if the cable were out."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import zmq

from bridge.audit import Audit
from bridge.doorman import Doorman
from bridge.ecu_lane import EcuLane
from bridge.endpoints import BridgeError, bound
from bridge.keys import KeyFileError, Keyring
from bridge.requests import Role
from bridge.threads import die_together
from hilnode.realtime import keep_off, make_thread_hard


def open_lane(spec: dict[str, Any]) -> EcuLane:
    """The lane on its endpoint, with the doorman in front of it if there are keys."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keyring = Keyring(Path(spec["keys"])) if spec["keys"] else None
    doorman = Doorman(context, keyring) if keyring else None
    socket = bound(context, keyring, zmq.ROUTER, "bridge.ecu", spec["ecu"])
    anybody = Role[spec["role"].upper()]

    def role_of(who: str) -> Role | None:
        if doorman is None:
            return anybody
        guest = doorman.guest(who)
        return guest.role if guest else None

    path = Path(spec["directory"]) / "audit.jsonl" if spec["directory"] else None
    audit = Audit(path, lambda line: print(line, flush=True))  # the node tells it to people
    lane = EcuLane(spec, socket, role_of, audit, keyed=doorman is not None)
    if doorman:
        doorman.on_refusal = lane.note_refusal
    return lane


def main() -> int:
    """Entry point: one line of JSON on standard input, then serve."""
    spec = json.loads(sys.stdin.readline())
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    keep_off(spec["cpu"])
    die_together()
    make_thread_hard(-1, 0)  # only for the fine timer
    try:
        lane = open_lane(spec)
    except (BridgeError, KeyFileError) as error:
        print(error, file=sys.stderr)
        return 2
    try:
        lane.work()
    finally:
        lane.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

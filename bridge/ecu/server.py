"""The process of the ECU lane. If it dies it is restarted; its inputs go stale meanwhile, as with a cut cable."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import zmq

from bridge.ecu.lane import EcuLane
from bridge.protocol.audit import Audit
from bridge.protocol.endpoints import BridgeError, bound
from bridge.protocol.keys import KeyFileError, Keyring
from bridge.protocol.operations import Role
from bridge.protocol.threads import die_together
from bridge.protocol.zap_authenticator import ZapAuthenticator
from hilnode.shared.realtime import keep_off, make_thread_hard


def open_lane(spec: dict[str, Any]) -> EcuLane:
    """The lane on its endpoint, with the authenticator in front of it if there are keys."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    keyring = Keyring(Path(spec["keys"])) if spec["keys"] else None
    authenticator = ZapAuthenticator(context, keyring) if keyring else None
    socket = bound(context, keyring, zmq.ROUTER, "bridge.ecu", spec["ecu"])
    anybody = Role[spec["role"].upper()]

    def role_of(who: str) -> Role | None:
        if authenticator is None:
            return anybody
        guest = authenticator.guest(who)
        return guest.role if guest else None

    path = Path(spec["directory"]) / "audit.jsonl" if spec["directory"] else None
    audit = Audit(path, lambda line: print(line, flush=True))  # the node tells it to people
    lane = EcuLane(spec, socket, role_of, audit, keyed=authenticator is not None)
    if authenticator:
        authenticator.on_refusal = lane.note_refusal
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

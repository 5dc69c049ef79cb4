"""Replay: publishes a recorded run by the protocol of a live node, so that every client and display works with it.

The topics `raw`, `state`, `event`, `timing`, `schema` and `bridge` come as they did, with the ticks and times of the
recording; `seq` counts what is sent now. The commands are those of a player: play, pause, speed, seek.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zmq
from numpy.typing import NDArray

from bridge.protocol.audit import Audit
from bridge.protocol.endpoints import bound
from bridge.protocol.keys import Keyring
from bridge.protocol.messages import Packer
from bridge.protocol.operations import REPLAY_OPERATIONS, VERSION, Role
from bridge.protocol.zap_authenticator import ZapAuthenticator
from bridge.publish import rates
from bridge.publish.commands import CommandServer
from bridge.publish.subscribers import Subscribers
from bridge.record.display_replay import DisplayReplay
from bridge.record.player import Player
from bridge.record.run_file import Run
from hilnode.shared.local_rpc import NotAnswered
from hilnode.shared.row import Col

AUDIT = "replay-audit.jsonl"
"""In the run's folder, where there are keys: who asked the replay for what."""

NAP = 0.001  # [s] between two looks for rows that are due
PATIENT_NAP = 0.02  # [s] while it stands
LOOK_NS = 200_000_000  # between two looks at who subscribes
TELL_NS = 1_000_000_000  # between two messages of schema, timing and bridge


class Replay:
    """Publishes one run on `publish` and takes commands on `commands`; `keys` is a folder, or nothing on loopback."""

    def __init__(
        self,
        run: Run,
        player: Player,
        *,
        publish: str,
        commands: str,
        keys: Path | None = None,
        state_hz: float = 100.0,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.run, self.player = run, player
        self.packer = Packer(run.schema, str(run.about["node"]), run.about["scene"])
        self._per_second = max(1, round(1e9 / run.schema.dt_ns))
        self._state_hz = state_hz
        self.display = DisplayReplay(run)
        self._ending = threading.Event()
        self._recent: list[NDArray[np.int64]] = []
        self._last: NDArray[np.int64] | None = None  # row that was sent
        self._tell_at = 0
        self._told = self._look_at = 0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        keyring = Keyring(keys) if keys else None
        self._authenticator = ZapAuthenticator(self._context, keyring) if keyring else None
        self._subscribers = Subscribers(
            bound(self._context, keyring, zmq.XPUB, "--publish", publish),
            keyed=keyring is not None,
            is_welcome=lambda user: self._authenticator is None or self._role_of(user) is not None,
            refused=lambda reason, who, why: self._server.note_refusal(reason, who, why),
        )
        self._server = CommandServer(
            bound(self._context, keyring, zmq.ROUTER, "--commands", commands),
            ask=_not_here,
            local=self._operations(),
            hello={
                "node": run.about["node"],
                "protocol": VERSION,
                "version": run.about["version"],
                "publish": publish,
                "schema": self.packer.hash,
                "replay": str(run.path),
            },
            tick=lambda: player.tick,
            audit=Audit(run.path.parent / AUDIT if keyring else None, say),
            role_of=self._role_of if self._authenticator else None,
            anybody=Role.ADMIN,
            operations=REPLAY_OPERATIONS,
        )
        if self._authenticator:
            self._authenticator.on_refusal = self._server.note_refusal

    def _role_of(self, who: str) -> Role | None:
        guest = self._authenticator.guest(who) if self._authenticator else None
        return guest.role if guest else None

    def _operations(self) -> dict[str, Callable[..., Any]]:
        player, now = self.player, time.monotonic_ns
        parameters = [{"name": name, "value": value} for name, value in self.run.about["parameters"].items()]
        return {
            "schema": lambda: {**self.packer.layout(), "parameters": parameters},
            "scene": lambda: {"shapes": self.run.about["scene"]},
            "terrain": self.display.terrain,
            "props": self.display.props,
            "clock": lambda: {"time": now() * 1e-9, "tick": player.tick},
            "status": self.status,
            "rate": self._set_rate,
            "play": lambda: player.play(now()),
            "resume": lambda: player.play(now()),
            "pause": lambda: player.pause(now()),
            "speed": lambda value: player.set_speed(value, now()),
            "seek": lambda to: player.seek(to, now()),
            "stop": self._stop,
        }

    def _set_rate(self, hz: float, topic: str = "state") -> dict[str, Any]:
        rates.check(hz, topic, ["state"])  # the others are few, or were not recorded
        self._state_hz = hz
        return {"topic": topic, "hz": hz}

    def _stop(self) -> int:
        self._ending.set()
        return self.player.tick

    def status(self) -> dict[str, Any]:
        """Where it stands."""
        p = self.player
        return {
            "state": "playing" if p.playing and not p.ended else "paused",
            "paused": not p.playing or p.ended,
            "tick": p.tick,
            "time": p.position_s,
            "duration": p.duration_s,
            "speed": p.speed,
            "missing": self.run.notes,
        }

    def work(self, *, stay: bool, look: Callable[[], None] = lambda: None) -> None:
        """Until it is stopped, or, unless it is to `stay`, has come to the end. `look` is called now and then."""
        self._server.start()
        self.player.start(time.monotonic_ns())
        try:
            while not self._ending.is_set():
                moving = self._turn(time.monotonic_ns())
                look()
                if self.player.ended and not stay:
                    break
                self._ending.wait(NAP if moving else PATIENT_NAP)
            self._tell(time.monotonic_ns())
        finally:
            self._server.close()
            self._subscribers.close()
            if self._authenticator:
                self._authenticator.close()
            self._context.term()

    def end(self) -> None:
        """Have `work` come back; may be called from a signal handler."""
        self._ending.set()

    def _turn(self, now: int) -> bool:
        """Send what is due; whether there will be more soon."""
        every = max(1, round(self._per_second / self._state_hz * abs(self.player.speed)))
        for row, events in self.player.take(now):
            for event in events:
                told = {k: v for k, v in event.items() if k not in ("number", "order")}
                self._subscribers.send(self.packer.event({"value": None, **told}))
            self._subscribers.send(self.packer.raw(row))
            if row[Col.TICK] % every == 0 or not self.player.playing:
                self._subscribers.send(self.packer.state(row))
            self._recent.append(row)
            self._last = row
        if now >= self._look_at:
            self._look_at = now + LOOK_NS
            self._subscribers.look()
        for topic, body in self.display.look(self.player.tick, now):
            self._subscribers.send(self.packer.pack(topic, now * 1e-9, self.player.tick, body))
        if now >= self._tell_at:
            self._tell_at = now + TELL_NS
            self._tell(now)
        return self.player.playing and not self.player.ended

    def _tell(self, now: int) -> None:
        """What is told once a second."""
        rows, self._recent = self._recent, []
        if not rows and self._last is not None:  # it stands: for who has just come
            self._subscribers.send(self.packer.raw(self._last))
            self._subscribers.send(self.packer.state(self._last))
        tick = self.player.tick
        time_s = rows[-1][Col.WAKE] * 1e-9 if rows else now * 1e-9
        self._subscribers.send(self.packer.schema(time_s, tick))
        if rows:
            self._subscribers.send(self.packer.timing(np.array(rows), 0))
        if self._told % self.packer.scene_every == 0:
            self._subscribers.send(self.packer.scene(float(time_s), tick))
        self._told += 1
        counted = {
            "overflows": self._subscribers.overflows,
            "commands": self._server.counts.as_dict(),
            "losses": self._server.losses(),
        }
        lost = int(self.run.progress.get("lost_rows", 0))
        self._subscribers.send(
            self.packer.pack("bridge", float(time_s), tick, {"lost": lost, **counted, "replay": self.status()})
        )


def _not_here(method: str, given: dict[str, Any]) -> Any:
    raise NotAnswered(f"{method}: this is a replay, there is no node to ask")

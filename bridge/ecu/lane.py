"""The ECU lane: values from ECUs go into the node's mailboxes, and device commands go out to the ECUs.

    ECU --(DEALER)--> ROUTER --> mailbox --> the tick takes it like any device's
    ECU <------------ ROUTER <-- the row's commands, as soon as the row is there

In lockstep an ECU's message may grant steps. Its values are in the mailbox before the grant is in the command ring, and
the tick looks into the ring before it looks into the mailbox: so the step uses these values, always.

An ECU has a seat: one at a time for each driver. It is free again when the ECU's connection is closed, or when it was
silent for so long that its driver gave it up.
"""

from __future__ import annotations

import os
import queue
import select
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np
import zmq
from numpy.typing import NDArray

from bridge.ecu.seat import Seat
from bridge.protocol.audit import Audit
from bridge.protocol.connections import Connections, sender
from bridge.protocol.ecu_wire import VERSION, Frame, frame_of, refusal, unpack
from bridge.protocol.operations import Refused, Role
from bridge.protocol.untrusted import shown
from bridge.protocol.waiting import now
from hilnode.shared.control import Control, Word
from hilnode.shared.ecu_link import E
from hilnode.shared.lockfree.mailbox import put
from hilnode.shared.lockfree.ring import Ring, RingView, drain, push, pushed
from hilnode.shared.row import Col, Schema, State

POLL_S = 50e-6  # between two looks at the ring once a row is due
SLOW_POLL_S = 1e-3  # when no row is due: a message wakes the lane at once, whatever it waits for
IDLE_POLL_S = 10e-3  # when nobody is there to be told of rows
PATIENCE_NS = 20_000_000  # without a row for so long: none is due
LOOK_NS = 10_000_000  # between two looks at the node and its watchdog
REPORT_NS = 200_000_000  # between two reports on each link
NEEDED = Role.OPERATE  # for what an ECU does
OWN_NAMES = b"\0"  # how ZeroMQ begins the name of a connection that has none of its own: each is given once
RUNNING, LOCKSTEP = int(State.RUNNING), "lockstep"


def warm_up() -> None:
    """Compile what the lane uses, on memory of its own: an ECU must not wait for a compiler."""
    here = np.zeros(64, np.int64)
    address = here.ctypes.data
    ring = RingView(address, 2, 1)
    push(ring, address)
    drain(ring, np.zeros(2, np.int64), np.zeros((2, 1), np.int64))
    put(address, 1, address, address)
    pushed(ring)


class EcuLane:
    """Serves the ECUs of one node in the calling thread. `spec` comes from the node: see hilnode/node/child_specs.py.

    `role_of` tells the role of somebody by the name of their key; without keys everybody is the same.
    """

    def __init__(
        self,
        spec: dict[str, Any],
        socket: zmq.Socket[bytes],
        role_of: Callable[[str], Role | None],
        audit: Audit,
        *,
        keyed: bool,
    ) -> None:
        warm_up()
        node = spec["node"]
        self._schema = Schema.from_dict(spec["schema"])
        self._control = Control.attach(node)
        self._rows = Ring.attach(f"{node}.rows", schema=self._schema.hash)
        self._grants = Ring.attach(spec["grants"])
        self._grant = np.zeros(self._grants.view.width, np.int64)
        self._grant[0] = spec["step_op"]
        self._lockstep = spec["pace"] == LOCKSTEP
        self._socket, self._role_of, self._audit = socket, role_of, audit
        self._outside: queue.SimpleQueue[tuple[str, str, str]] = queue.SimpleQueue()
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # so that what can not be sent is an error
        self._fd = int(socket.getsockopt(zmq.FD))
        self._connections = Connections(socket, self.note_refusal, keyed=keyed)
        self.seats: list[Seat] = [Seat(e, k, spec, self._schema) for k, e in enumerate(spec["ecus"])]
        self._by_identity: dict[bytes, Seat] = {}
        self._gone: deque[bytes] = deque(maxlen=64)  # ECUs that have closed: what they sent before may come after
        self._reader = self._rows.reader(first=max(0, len(self._rows) - 1), batch=64)
        self._last: NDArray[np.int64] | None = None  # the newest row
        self._last_number = -1
        self._node = self._control[Word.PID]
        self._look_due = self._report_due = self._row_at = now()

    def note_refusal(self, reason: str, who: str, why: str) -> None:
        """Somebody was turned away before a message; may be called from any thread."""
        self._outside.put((reason, who, why))

    # -- the loop -----------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Until the node ends or dies; the ECUs are told their safe values then."""
        while True:
            self._receive()
            self._take_rows()
            moment = now()
            if moment >= self._look_due:
                self._look_due = moment + LOOK_NS
                self._see_who_left()
                if not self._node_lives():
                    break
                if moment - self._row_at > LOOK_NS and self._control[Word.FIRED] != self._control[Word.EXCUSED]:
                    self._tell_all()  # the loop is frozen and the watchdog has fired
            if moment >= self._report_due:
                self._report_due = moment + REPORT_NS
                self._report()
            select.select([self._fd], [], [], self._pause(moment))
        self._take_rows()
        self._tell_all(ended=True)

    def _node_lives(self) -> bool:
        return not self._control[Word.CLOSING] and os.getppid() == self._node

    def _pause(self, moment: int) -> float:
        """How long a wait for messages may be, so that the next row is not missed [s]."""
        if not self._by_identity:
            return IDLE_POLL_S
        if self._lockstep:
            return POLL_S if any(s.goal for s in self.seats) else SLOW_POLL_S
        if moment - self._row_at > PATIENCE_NS:
            return SLOW_POLL_S
        return max(POLL_S, 1e-9 * (self._row_at + self._control[Word.PERIOD] - moment))

    def _report(self) -> None:
        while not self._outside.empty():
            reason, who, why = self._outside.get()
            self._audit.refused(who, reason, why, self._control[Word.TICK])
            for seat in self.seats:
                seat.refused()
        for seat in self.seats:
            seat.report()
            if seat.identity and self._silent(seat):
                self._leave(seat, silent=True)
            elif seat.identity and not self._is_allowed(seat.user):
                self._leave(seat)

    def _silent(self, seat: Seat) -> bool:
        """Judged up to the newest row: while none come, an ECU that answers states has nothing to say, and it keeps its
        seat, so that it is told its safe values when the watchdog fires and when the node turns out to be dead."""
        return not self._lockstep and self._row_at - seat.link[E.HEARD] > seat.silent_ns

    def close(self) -> None:
        for seat in self.seats:
            seat.leave()
        self._audit.close(self._control[Word.TICK])
        self._connections.close()
        self._socket.close()

    # -- from an ECU --------------------------------------------------------------------------------------------------

    def _receive(self) -> None:
        """Every message that has come, a limited number at a time."""
        for _ in range(100):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            arrived = now()
            identity, seat, seq = frames[0].bytes, None, None
            if identity in self._gone:  # it must not take the seat of the next one
                continue
            try:
                if len(frames) != 2:
                    raise Refused("malformed", "a message is one frame")
                message = unpack(frames[1].buffer)
                seq = message.get("seq") if type(message.get("seq")) is int else None
                seat = self._by_identity.get(identity) or self._take_seat(identity, frames[1], message)
                if seat is None:  # its sender has closed since
                    continue
                self._take(seat, frame_of(message, seat.channels), arrived)
            except Refused as error:
                self._refuse(identity, seat, error, frames[-1], seq)
            except Exception as error:  # whatever a message may bring about, it must not end the lane of all others
                refused = Refused("malformed", f"it can not be read: {type(error).__name__}")
                self._refuse(identity, seat, refused, frames[-1], seq)

    def _take_seat(self, identity: bytes, frame: zmq.Frame, message: dict[str, Any]) -> Seat | None:
        """Somebody who has no seat yet gets one; None if it has closed since: what it sent before takes no seat."""
        name, user, connection = message.get("ecu"), sender(frame), int(frame.get(zmq.SRCFD))
        if not self._is_allowed(user):
            raise Refused("unauthorised", f"an ECU needs the role {NEEDED.name.lower()}, {user} has not got it")
        found = [s for s in self.seats if name in (None, s.name)]
        if len(found) != 1:
            raise Refused("unknown", f"ecu = {shown(name)}: must be one of {', '.join(s.name for s in self.seats)}")
        seat = found[0]
        self._see_who_left()
        if self._connections.is_closed(connection):
            return None
        if seat.identity and seat.connection == connection and not self._lockstep:
            self._tell(seat)  # two that are open do not share a number: this shows which of them has closed
            if seat.identity:
                return None
        if seat.identity:
            raise Refused("refused", f"{seat.name} has an ECU already ({seat.user}): one at a time")
        seat.take(identity, user, connection)
        self._by_identity[identity] = seat
        tick = self._control[Word.TICK]
        self._audit.done(user, NEEDED.name.lower(), {"op": "connect", "ecu": seat.name}, "done", tick)
        return seat

    def _is_allowed(self, user: str) -> bool:
        role = self._role_of(user)
        return role is not None and role >= NEEDED

    def _see_who_left(self) -> None:
        """Connections that were closed since the last time: whose they were shows in their number."""
        for closed in self._connections.look():
            for seat in self.seats:
                if seat.identity and seat.connection == closed:
                    self._leave(seat, for_good=True)

    def _take(self, seat: Seat, frame: Frame, arrived: int) -> None:
        seat.hear(frame, arrived)
        if frame.channels:
            seat.deliver(frame, arrived)
        if not self._lockstep:
            if frame.step:
                raise Refused("refused", 'step is for node.pace = "lockstep"')
            return
        if seat.goal:
            raise Refused("refused", "the steps of the last message are not done yet: wait for the answer")
        self._take_rows()
        if frame.step and self._control[Word.STATE] == RUNNING:
            self._give(seat, frame.step)
        else:
            self._tell(seat)

    def _give(self, seat: Seat, steps: int) -> None:
        """Grant steps; the answer comes with the row in which they are done."""
        done = self._control[Word.STEP] if self._last is None else int(self._last[Col.STEP])
        seat.goal = done + steps
        seat.granted, seat.after = steps, len(self._rows)
        seat.link[E.STEPS] += steps
        self._grant[3] = np.float64(steps).view(np.int64)
        self._grants.push(self._grant)

    def _refuse(self, identity: bytes, seat: Seat | None, error: Refused, frame: zmq.Frame, seq: int | None) -> None:
        for s in [seat] if seat else self.seats:
            s.refused()
        self._audit.refused(seat.user if seat else sender(frame), error.reason, str(error), self._control[Word.TICK])
        try:
            self._socket.send_multipart([identity, refusal(error.reason, str(error), seq)], zmq.NOBLOCK)
        except zmq.ZMQError:  # it has gone, or does not read
            return

    # -- to the ECUs --------------------------------------------------------------------------------------------------

    def _take_rows(self) -> None:
        """New rows: the newest goes to each ECU; in lockstep the one that ends what was granted."""
        while len(rows := self._reader.read()):
            first = self._reader.next - len(rows)
            if self._lockstep:
                self._answer(rows, first)
            self._last, self._last_number = rows[-1].copy(), first + len(rows) - 1
            self._row_at = int(self._last[Col.WAKE])
            if not self._lockstep:
                for seat in self.seats:
                    if seat.identity and seat.is_due(rows):
                        self._tell(seat)

    def _answer(self, rows: NDArray[np.int64], first: int) -> None:
        for number, row in enumerate(rows, first):
            for seat in self.seats:
                done = row[Col.STEP] >= seat.goal or row[Col.STATE] != RUNNING
                if seat.goal and number >= seat.after and done:
                    self._last, seat.goal = row.copy(), 0
                    self._tell(seat)

    def _tell_all(self, *, ended: bool = False) -> None:
        for seat in self.seats:
            if seat.identity:
                self._tell(seat, ended=ended)

    def _tell(self, seat: Seat, *, ended: bool = False) -> None:
        """Send the newest row to an ECU; one that has gone loses its seat."""
        row, answers = self._last, self._lockstep and seat.granted > 0
        live = not ended and row is not None and row[Col.STATE] == RUNNING and self._is_live(answers)
        moment = now() * 1e-9
        message = {"v": VERSION, **_row_words(row, self._schema.dt_ns), **seat.words(row, live, moment)}
        if self._lockstep and not answers:  # no row between two steps: it may have been armed and set running since
            message["state"] = _STATES[self._control[Word.STATE]]
        if ended and message["state"] == "running":
            message["state"] = "stopped"
        try:
            self._socket.send_multipart([seat.identity, msgpack.packb(message)], zmq.NOBLOCK)
        except zmq.Again:
            seat.link[E.UNSENT] += 1
        except zmq.ZMQError:  # no route: the connection is closed, and what it sent before may still be unread
            self._leave(seat, for_good=True)
        else:
            seat.link[E.SENT] += 1

    def _is_live(self, answers: bool) -> bool:
        """Whether a running row's commands may be told. An answer in lockstep is what the row says, whatever happened
        to the node since; but nothing live is told after the watchdog has fired."""
        if answers:
            return self._control[Word.FIRED] == self._control[Word.EXCUSED]
        return self._control.live

    def _leave(self, seat: Seat, *, for_good: bool = False, silent: bool = False) -> None:
        """The seat is free; `for_good`: its ECU has closed. A name that ECUs give themselves may come back."""
        if for_good and seat.identity.startswith(OWN_NAMES):
            self._gone.append(seat.identity)
        self._by_identity.pop(seat.identity, None)
        seat.leave(silent=silent)


def _row_words(row: NDArray[np.int64] | None, dt_ns: int) -> dict[str, Any]:
    """What an ECU is told of a row beside its values."""
    if row is None:
        return {"tick": -1, "step": 0, "t": 0.0, "timestamp": 0.0, "state": "configured"}
    return {
        "tick": row.item(Col.TICK),
        "step": row.item(Col.STEP),
        "t": row.item(Col.STEP) * dt_ns * 1e-9,
        "timestamp": row.item(Col.WAKE) * 1e-9,
        "state": _STATES[row.item(Col.STATE)],
    }


_STATES: Sequence[str] = [s.name.lower() for s in State]

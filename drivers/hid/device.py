"""hid: joysticks, pedals, steering wheels, gamepads, button boxes, through hidapi.

Axes and buttons are found by what the device's report descriptor says they are, not by where they lie. A thread waits
in the kernel for the next report, then takes all that wait: the newest counts, but every one is looked at, so that no
press of a button gets lost between two.

Many devices report changes only. While such a device is silent, its values hold, and their stamps are renewed:
unplugging is noticed at once. `silence = "stale"` is for radio links, where silence may mean that nobody is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from drivers.base import HELD, Driver, DriverError, OptionError
from drivers.hid.channels import channels_of, load_calibration
from drivers.hid.decoder import Counts, Decoder
from drivers.hid.find import KEYS as ADDRESS
from drivers.hid.find import Address, Handle, library
from drivers.hid.outputs import Outputs, Packer, report_from
from drivers.hid.report import Kind
from drivers.options import Options
from hilnode.core.signals import SignalError, check_unique

KEYS = (
    *ADDRESS, "channels", "calibration", "silence", "press_ms", "ask",
    "outputs", "templates", "start", "refresh_ms",
)  # fmt: skip

WAIT_MS = 20  # a read waits this long; silent values are renewed as often, and more often if they go stale sooner
RENEWALS = 3  # of a silent value before it would go stale
QUEUE = 64  # reports that Linux keeps for a reader (HIDRAW_BUFFER_SIZE)


class HidDevice(Driver):
    """Options: see docs/connect-a-joystick.md."""

    kind = "hid"
    files = ("calibration",)

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        o = Options(name, options, KEYS)
        self.address = Address.of(o)
        measured = load_calibration(name, o.text("calibration", "")) if o.has("calibration") else None
        self._made_for = (measured.vendor, measured.product) if measured else (0, 0)
        self._channels = channels_of(name, options.get("channels"), measured.channels if measured else None)
        self._outputs = Outputs(name, options.get("outputs", {}), options.get("templates", []))
        if not self._channels and not self._outputs.signals:
            raise OptionError(
                f'drivers.{name}: name its axes and buttons: channels = {{ boom = "x", horn = "button 1" }}, or '
                f"calibration = a file that `hilnode calibrate {name}` has written"
            )
        self.inputs = tuple(c.signal for c in self._channels)
        self.outputs = self._outputs.signals
        try:
            check_unique(self.inputs, f"drivers.{name}.channels")
        except SignalError as error:
            raise OptionError(str(error)) from error
        self._silent_is_fresh = o.choice("silence", "rest", {"rest": True, "stale": False})
        self._press_ns = round(o.number("press_ms", 10.0, 0.0, 1000.0) * 1e6)
        self._ask = o.flag("ask", False)
        self._refresh = o.number("refresh_ms", 0.0, 0.0, 60_000.0) * 1e-3
        start = options.get("start", [])
        if not isinstance(start, (list, tuple)):
            raise o.wrong("start", "must be a list of reports, [[0, 0xF5, 0, 0, 0, 0, 0, 0]]")
        self._start = [bytes(report_from(f"drivers.{name}.start[{k}]", r)) for k, r in enumerate(start)]
        self._opened: _Opened | None = None

    @property
    def counts(self) -> Counts:
        """What became of the reports since the device was opened."""
        return self._opened.decoder.counts if self._opened else Counts()

    def open(self) -> None:
        if self._opened is None:
            opened = self._open()
            try:
                for report in self._start:
                    opened.handle.write(report)
            except (DriverError, ValueError) as error:
                opened.handle.close()
                raise DriverError(f"start: {error}") from error
            self._opened = opened

    def _open(self) -> _Opened:
        handle = Handle(self.address)
        try:
            self._check_calibration(handle)
            decoder = Decoder(handle.descriptor, self._channels, self._press_ns)
            return _Opened(handle, decoder, self._outputs.fit(handle.descriptor))
        except ValueError as error:
            handle.close()
            raise DriverError(f"{handle.label}: {error}") from error

    def _check_calibration(self, handle: Handle) -> None:
        found = (handle.entry.get("vendor_id", 0), handle.entry.get("product_id", 0))
        if any(self._made_for) and any(found) and self._made_for != found:
            made, is_one = (f"{v:04x}:{p:04x}" for v, p in (self._made_for, found))
            raise ValueError(f"the calibration is of a {made}, this is a {is_one}: `hilnode calibrate {self.name}`")

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.handle.close()

    def _must(self) -> _Opened:
        if self._opened is None:
            raise DriverError("not open")
        return self._opened

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        opened = self._must()
        counts = opened.decoder.counts
        short = counts.short
        try:
            return self._take(opened, values, stamps)
        finally:
            self.refused += counts.short - short

    def _take(self, opened: _Opened, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        handle, decoder = opened.handle, opened.decoder
        if not opened.asked:
            opened.asked = True
            if self._ask and (heard := self._ask_all(opened, values, stamps)):
                return heard
        data = handle.read(opened.length, self._patience(decoder))
        now = time.monotonic_ns()
        heard = taken = 0
        while data:
            heard += decoder.feed(data, values, stamps, now)
            opened.last = data
            taken += 1
            if taken == QUEUE:  # it sends faster than we read: let the tick have what there is
                break
            data = handle.read(opened.length)
        decoder.counts.superseded += max(0, heard - 1)
        released = decoder.release(values, now)
        renewed = heard == 0 and self._silent_is_fresh and decoder.renew(stamps, now)
        return heard or (HELD if renewed or released else 0)

    def _patience(self, decoder: Decoder) -> int:
        """How long to wait [ms]: not beyond the release of a button, nor until a silent value has gone stale."""
        wait = WAIT_MS if self.stale_ns is None else min(WAIT_MS, self.stale_ns // (RENEWALS * 1_000_000))
        due = decoder.next_release()
        if due is not None:
            wait = min(wait, (due - time.monotonic_ns()) // 1_000_000 + 1)
        return max(1, wait)

    def _ask_all(self, opened: _Opened, values: NDArray[np.float64], stamps: NDArray[np.int64]) -> int:
        descriptor = opened.handle.descriptor
        reports = sorted(report for kind, report in descriptor.bits if kind == Kind.INPUT)
        answers = [opened.handle.ask(report, opened.length) for report in reports]
        now = time.monotonic_ns()
        return sum(opened.decoder.feed(a, values, stamps, now) for a in answers if a)

    def raw(self) -> Mapping[str, str]:
        """The newest report, its number first if the device numbers them."""
        return {"frame": bytes(self._opened.last).hex(" ")} if self._opened and self._opened.last else {}

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, values: NDArray[np.float64]) -> None:
        """Only what changed: a report takes milliseconds, and the tick has a new value every one."""
        opened = self._must()
        again = self._refresh > 0 and time.monotonic() - opened.when >= self._refresh
        for k, report in enumerate(opened.packer.pack(values)):
            if again or opened.sent.get(k) != report:
                opened.handle.write(report)
                opened.sent[k] = report
                opened.when = time.monotonic()

    def prepare_safe(self) -> None:
        library()

    def write_safe(self, values: NDArray[np.float64]) -> None:
        """Beside the node: hidraw lets several processes have a device open."""
        if not self.outputs:
            return
        if self._opened is None:
            self._opened = self._open()
        opened = self._opened
        try:
            for report in opened.packer.pack(values):
                opened.handle.write(report)
        except DriverError:
            self.close()  # plugged in again, it has another number
            raise


class _Opened:
    """What there is while the device is open."""

    def __init__(self, handle: Handle, decoder: Decoder, packer: Packer) -> None:
        self.handle, self.decoder, self.packer = handle, decoder, packer
        self.length = max(64, handle.descriptor.longest(Kind.INPUT))
        self.asked = False
        self.last: Sequence[int] = ()  # report, as it came
        self.sent: dict[int, bytes] = {}
        self.when = 0.0

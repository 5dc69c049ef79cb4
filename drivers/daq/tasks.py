"""The tasks of a DAQ card: analogue and digital inputs, counters, analogue and digital outputs. Needs nidaqmx.

A task is started once and then read or written by stream readers and writers into arrays that are there already:
`task.read()` would ask the driver for the task's shape, and start and stop the task, each time.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from nidaqmx import constants as ni
from nidaqmx.errors import DaqError
from nidaqmx.stream_readers import AnalogMultiChannelReader, CounterReader, DigitalMultiChannelReader
from nidaqmx.stream_writers import AnalogMultiChannelWriter, DigitalMultiChannelWriter
from numpy.typing import NDArray

from drivers.daq.errors import TIMED_OUT, code_of
from drivers.daq.link import Link
from drivers.daq.options import Point
from drivers.daq.sample_clock import SampleClock
from drivers.daq.scaling import Scaling

Values = NDArray[np.float64]
Stamps = NDArray[np.int64]

WAIT = 0.05  # [s] a read waits for samples
AT_ONCE = 0.0  # [s] for what is there already
BLOCK = 0.001  # [s] of samples are waited for together: nobody needs them more often than the tick
LATE_BLOCKS = 2.5  # since the newest sample; one is due after one, and a slow answer may take another
BUFFER = 1.0  # [s] of samples are kept for a node that stands still
SMALLEST_BUFFER = 1000  # samples


class Job:
    """One task and its channels, set up and started."""

    def __init__(self, link: Link, points: Sequence[Point]) -> None:
        self._link = link
        self.points = points
        self.scaling = Scaling([p.place for p in points], [p.scale for p in points])
        self.task, self._name = link.task()
        try:
            self._set_up()
            self._start()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        raise NotImplementedError

    def _start(self) -> None:
        self.task.start()

    def restart(self) -> None:
        """After an acquisition that stopped by itself."""
        self.task.stop()
        self._start()

    def close(self) -> None:
        self._link.clear(self.task, self._name)

    def _at(self, point: Point) -> str:
        return f"{self._link.device}/{point.channel}"


class Input(Job):
    """A task that is read."""

    def read(self, values: Values, stamps: Stamps) -> bool:
        """Put what is new where it belongs."""
        raise NotImplementedError

    def measured(self) -> list[tuple[Point, int, float]]:
        """Each channel with its place among the driver's and what was read last, as the card gave it."""
        raws = self.scaling.last
        return [] if raws is None else [(p, p.place, float(x)) for p, x in zip(self.points, raws, strict=True)]


class AnalogIn(Input):
    """Volts, converted when they are asked for."""

    def _set_up(self) -> None:
        for point in self.points:
            terminal = ni.TerminalConfiguration[point.terminal]
            low, high = point.volts
            self.task.ai_channels.add_ai_voltage_chan(
                self._at(point), terminal_config=terminal, min_val=low, max_val=high
            )
        self._reader = AnalogMultiChannelReader(self.task.in_stream)
        self._reader.verify_array_shape = False  # it would ask the driver each time
        self._raws = np.zeros(len(self.points))

    def read(self, values: Values, stamps: Stamps) -> bool:
        self._reader.read_one_sample(self._raws, WAIT)
        self.scaling.to_values(self._raws, time.monotonic_ns(), values, stamps)
        return True


class SampledIn(AnalogIn):
    """Volts, converted by the card's sample clock into a buffer. All that is there is read, the newest is kept."""

    def __init__(self, link: Link, points: Sequence[Point], rate: float, source: str) -> None:
        self._rate, self._source = rate, source
        self._block = max(1, round(rate * BLOCK))
        self._room = max(SMALLEST_BUFFER, math.ceil(rate * BUFFER))
        self._samples = np.zeros(self._room * len(points))
        super().__init__(link, points)

    def _set_up(self) -> None:
        super()._set_up()
        source = f"/{self._link.device}/{self._source}" if self._source else ""
        continuous = ni.AcquisitionType.CONTINUOUS
        self.task.timing.cfg_samp_clk_timing(self._rate, source, sample_mode=continuous, samps_per_chan=self._room)
        self.task.in_stream.input_buf_size = self._room
        with contextlib.suppress(DaqError):  # not every card lets us choose; some would burn a processor otherwise
            self.task.in_stream.wait_mode = ni.WaitMode.SLEEP
            self.task.in_stream.sleep_time = 0.25 * BLOCK

    def _start(self) -> None:
        super()._start()
        period = 1e9 / self.task.timing.samp_clk_rate  # what the card made of our wish
        self._clock = SampleClock(period)
        self._block_ns = self._block * period
        self._newest = time.monotonic_ns()

    def read(self, values: Values, stamps: Stamps) -> bool:
        """Wait for the next block, or take all that has piled up while we were late."""
        ready = self.task.in_stream.avail_samp_per_chan if self._is_late() else 0
        count = self._fetch(min(max(ready, self._block), self._room))
        now = time.monotonic_ns()
        if count == 0:
            return False
        newest = self._samples[count - 1 : count * len(self.points) : count]  # channel by channel, the last of each
        self._newest = self._clock.newest(count, now)
        self.scaling.to_values(newest, now if self._source else self._newest, values, stamps)
        return True

    def _is_late(self) -> bool:
        """Whether more than the next block may be there: worth a question, which over gRPC costs half a millisecond.

        A clock from outside has a pace that only the card knows.
        """
        return bool(self._source) or time.monotonic_ns() - self._newest > LATE_BLOCKS * self._block_ns

    def _fetch(self, count: int) -> int:
        """How many samples of each channel came; fewer than asked for when the time was up."""
        channels = len(self.points)
        room = self._samples[: channels * count].reshape(channels, count)
        try:
            return int(self._reader.read_many_sample(room, count, WAIT))
        except DaqError as error:
            if code_of(error) != TIMED_OUT:
                raise
            return int(getattr(error, "samps_per_chan_read", 0))


class LinesIn(Input):
    """Digital lines, as they are when asked."""

    def _set_up(self) -> None:
        for point in self.points:
            self.task.di_channels.add_di_chan(self._at(point), line_grouping=ni.LineGrouping.CHAN_PER_LINE)
        self._reader = DigitalMultiChannelReader(self.task.in_stream)
        self._reader.verify_array_shape = False
        self._bits = np.zeros(len(self.points), bool)
        self._invert = np.array([p.invert for p in self.points])

    def read(self, values: Values, stamps: Stamps) -> bool:
        self._reader.read_one_sample_one_line(self._bits, AT_ONCE)
        self.scaling.to_values(self._bits ^ self._invert, time.monotonic_ns(), values, stamps)
        return True


class Counter(Input):
    """One counter: cards take no second one into a task. An encoder's place or a count is there at any time."""

    def _set_up(self) -> None:
        (point,) = self.points
        channels, at = self.task.ci_channels, self._at(point)
        if point.measure == "count":
            channels.add_ci_count_edges_chan(at, edge=ni.Edge[point.edge])
        encoder = {"decoding_type": ni.EncoderType[point.decoding], "zidx_enable": point.index}
        if point.measure == "angle":
            units = ni.AngleUnits.RADIANS
            channels.add_ci_ang_encoder_chan(at, **encoder, units=units, pulses_per_rev=point.pulses)
        if point.measure == "position":
            channels.add_ci_lin_encoder_chan(at, **encoder, dist_per_pulse=point.distance)
        self._reader = CounterReader(self.task.in_stream)
        self._reader.verify_array_shape = False
        self._raw = np.zeros(1)
        self._edges = self._last = 0

    def read(self, values: Values, stamps: Stamps) -> bool:
        if self.points[0].measure == "count":
            self._raw[0] = self._counted(int(self._reader.read_one_sample_uint32(AT_ONCE)))
        else:
            self._raw[0] = self._reader.read_one_sample_double(AT_ONCE)
        self.scaling.to_values(self._raw, time.monotonic_ns(), values, stamps)
        return True

    def _counted(self, register: int) -> int:
        """Edges since the start; the card's 32 bits begin again at 0."""
        self._edges += (register - self._last) % 2**32
        self._last = register
        return self._edges


class Frequency(Counter):
    """The card measures each period into a buffer; the newest is looked at, so that nobody waits for a pulse.

    Without a new pulse for a while the frequency is below the inverse of that while, and below the range it is 0.
    """

    def _set_up(self) -> None:
        (point,) = self.points
        self._low, high = point.hertz
        self.task.ci_channels.add_ci_freq_chan(self._at(point), min_val=self._low, max_val=high)
        continuous = ni.AcquisitionType.CONTINUOUS
        self.task.timing.cfg_implicit_timing(continuous, samps_per_chan=max(SMALLEST_BUFFER, math.ceil(high * BLOCK)))
        stream = self.task.in_stream
        stream.overwrite = ni.OverwriteMode.OVERWRITE_UNREAD_SAMPLES
        stream.relative_to, stream.offset = ni.ReadRelativeTo.MOST_RECENT_SAMPLE, -1
        self._reader = CounterReader(stream)
        self._reader.verify_array_shape = False
        self._raw = np.zeros(1)
        self._last_hertz = 0.0

    def _start(self) -> None:
        super()._start()
        self._seen, self._since = 0, time.monotonic_ns()

    def read(self, values: Values, stamps: Stamps) -> bool:
        asked = time.monotonic_ns()
        total = self.task.in_stream.total_samp_per_chan_acquired
        if total != self._seen:
            self._reader.read_many_sample_double(self._raw, 1, AT_ONCE)
            self._seen, self._since, self._last_hertz = total, time.monotonic_ns(), float(self._raw[0])
        silent = (asked - self._since) * 1e-9  # for sure: a slow answer is no silence
        if silent * self._last_hertz > 1.0:
            self._raw[0] = 1.0 / silent if silent * self._low < 1.0 else 0.0
        self.scaling.to_values(self._raw, time.monotonic_ns(), values, stamps)
        return True


class Output(Job):
    """A task that is written."""

    def write(self, values: Values) -> None:
        """Hand over the channels that are this task's."""
        raise NotImplementedError


class AnalogOut(Output):
    """Volts out, held by the card until the next write."""

    def _set_up(self) -> None:
        for point in self.points:
            low, high = point.volts
            self.task.ao_channels.add_ao_voltage_chan(self._at(point), min_val=low, max_val=high)
        self._writer = AnalogMultiChannelWriter(self.task.out_stream, auto_start=False)
        self._writer.verify_array_shape = False
        self._raws = np.zeros(len(self.points))
        self._low, self._high = np.array([p.volts for p in self.points]).T

    def write(self, values: Values) -> None:
        self.scaling.to_raws(values, self._raws)
        np.clip(self._raws, self._low, self._high, out=self._raws)  # a device gets its limit, not nothing
        self._writer.write_one_sample(self._raws, WAIT)


class LinesOut(Output):
    """Digital lines out: from one half up they are high."""

    def _set_up(self) -> None:
        for point in self.points:
            self.task.do_channels.add_do_chan(self._at(point), line_grouping=ni.LineGrouping.CHAN_PER_LINE)
        self._writer = DigitalMultiChannelWriter(self.task.out_stream, auto_start=False)
        self._writer.verify_array_shape = False
        self._raws = np.zeros(len(self.points))
        self._invert = np.array([p.invert for p in self.points])

    def write(self, values: Values) -> None:
        self.scaling.to_raws(values, self._raws)
        self._writer.write_one_sample_one_line((self._raws >= 0.5) ^ self._invert, WAIT)


def inputs_of(link: Link, points: Sequence[Point], rate: float, source: str, *, sampled: bool) -> list[Input]:
    """The tasks that read these channels, the one that waits first."""
    made: list[Input] = []
    analogue = [p for p in points if p.sort == "ai"]
    lines = [p for p in points if p.sort == "line"]
    with _closing(made):
        if analogue:
            made.append(SampledIn(link, analogue, rate, source) if sampled else AnalogIn(link, analogue))
        if lines:
            made.append(LinesIn(link, lines))
        for counter in (p for p in points if p.sort == "counter"):
            kind = Frequency if counter.measure == "frequency" else Counter
            made.append(kind(link, [counter]))
    return made


def outputs_of(link: Link, points: Sequence[Point]) -> list[Output]:
    """The tasks that write these channels."""
    made: list[Output] = []
    with _closing(made):
        for sort, kind in (("ao", AnalogOut), ("line", LinesOut)):
            if mine := [p for p in points if p.sort == sort]:
                made.append(kind(link, mine))
    return made


@contextlib.contextmanager
def _closing(jobs: Sequence[Job]) -> Any:
    """Close the tasks made so far when the next cannot be had."""
    try:
        yield
    except BaseException:
        for job in jobs:
            job.close()
        raise

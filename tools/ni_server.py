"""An NI gRPC device server with make-believe cards: for tests and for trying the driver `daq` without hardware.

    python tools/ni_server.py --port 31763

The real client (`pip install "nidaqmx[grpc]"`) talks to it: the messages and the service are those that nidaqmx brings
along. A card has wires from its outputs to its inputs (ao0 to ai0, port0/line0 to port1/line0, ...), and signals of
time wherever a test puts one. Errors of NI-DAQmx can be had: a card that is removed, a buffer that runs over, samples
that do not come, a terminal that another task holds, a server that is gone, a server that is silent.
"""

from __future__ import annotations

import argparse
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
import session_pb2
from ni_card import HIGHEST, TEXTS, Card, Refused, State, Task
from nidaqmx._stubs import nidaqmx_pb2 as pb
from nidaqmx._stubs import nidaqmx_pb2_grpc as rpc
from nidaqmx.constants import AcquisitionType, ChannelType, ReadRelativeTo, UsageTypeAI

NAMES, MAJOR, MINOR = 0x193B, 0x1272, 0x1923  # attributes of the system
PRODUCT, SERIAL, INPUTS = 0x631, 0x632, 0x231E  # of a device
AVAILABLE, TOTAL, RELATIVE = 0x1223, 0x192A, 0x190A  # of reading
RATE, BUFFER, TASK_NAME = 0x1344, 0x186C, 0x1276
CHANNELS, CHANNEL_TYPE, MEASUREMENT = 0x1823, 0x187F, 0x695


def answer(work: Callable[..., Any]) -> Callable[..., Any]:
    """A call of the service: with the lock, the faults, and errors as NI's server sends them, in the last metadata."""

    def call(self: Service, request: Any, context: grpc.ServicerContext) -> Any:
        state, name = self.state, work.__name__
        while state.silent.is_set() and context.is_active():
            time.sleep(0.01)
        state.calls.append(name)
        try:
            for fault in [f for f in state.faults if f[0] == name][:1]:
                state.faults.remove(fault)
                raise Refused(fault[1])
            return work(self, request) or getattr(pb, f"{name}Response")()
        except Refused as error:
            context.set_trailing_metadata((("ni-error", str(error.code)),))
            context.abort(grpc.StatusCode.UNKNOWN, str(error))

    return call


class Service(rpc.NiDAQmxServicer):
    """The calls that a driver of analogue, digital and counter tasks makes; others are not implemented."""

    def __init__(self, state: State) -> None:
        self.state = state

    # -- system and devices ---------------------------------------------------------------------------------------

    @answer
    def GetSystemInfoAttributeUInt32(self, request: Any) -> Any:
        return pb.GetSystemInfoAttributeUInt32Response(value={MAJOR: 24, MINOR: 8}.get(request.attribute_raw, 0))

    @answer
    def GetSystemInfoAttributeString(self, request: Any) -> Any:
        names = ", ".join(card.name for card in self.state.cards.values() if card.present)
        return pb.GetSystemInfoAttributeStringResponse(value=names if request.attribute_raw == NAMES else "")

    @answer
    def GetDeviceAttributeString(self, request: Any) -> Any:
        card = self.state.card(request.device_name)
        analogue = ", ".join(f"{card.name}/{t}" for t in sorted(card.terminals) if t.startswith("ai"))
        values = {PRODUCT: card.product, INPUTS: analogue}
        return pb.GetDeviceAttributeStringResponse(value=values.get(request.attribute_raw, ""))

    @answer
    def GetDeviceAttributeUInt32(self, request: Any) -> Any:
        card = self.state.card(request.device_name)
        return pb.GetDeviceAttributeUInt32Response(value=card.serial if request.attribute_raw == SERIAL else 0)

    @answer
    def ResetDevice(self, request: Any) -> None:
        with self.state.lock:
            self.state.reset(self.state.card(request.device_name))

    @answer
    def GetErrorString(self, request: Any) -> Any:
        return pb.GetErrorStringResponse(error_string=TEXTS.get(request.error_code, "An error."))

    # -- tasks ----------------------------------------------------------------------------------------------------

    @answer
    def CreateTask(self, request: Any) -> Any:
        with self.state.lock:
            name = request.session_name or f"_unnamedTask<{next(self.state.numbers)}>"
            new = name not in self.state.tasks
            self.state.tasks.setdefault(name, Task(name))
        return pb.CreateTaskResponse(task=session_pb2.Session(name=name), new_session_initialized=new)

    @answer
    def GetTaskAttributeString(self, request: Any) -> Any:
        return pb.GetTaskAttributeStringResponse(value=request.task.name if request.attribute_raw == TASK_NAME else "")

    @answer
    def StartTask(self, request: Any) -> None:
        with self.state.lock:
            self.state.start(self.state.task(request))

    @answer
    def StopTask(self, request: Any) -> None:
        self.state.task(request).running = False

    @answer
    def ClearTask(self, request: Any) -> None:
        with self.state.lock:
            self.state.tasks.pop(request.task.name, None)

    # -- channels and timing --------------------------------------------------------------------------------------

    @answer
    def CreateAIVoltageChan(self, request: Any) -> None:
        self._volts(request, "ai")

    @answer
    def CreateAOVoltageChan(self, request: Any) -> None:
        self._volts(request, "ao")

    def _volts(self, request: Any, sort: str) -> None:
        if request.min_val < -HIGHEST or request.max_val > HIGHEST:
            raise Refused(-200077, f"\n\nRequested Value: {request.max_val}\nMaximum Value: {HIGHEST}")
        low, high = request.min_val, request.max_val
        self.state.channel(request, request.physical_channel, sort, low=low, high=high, settings=request)

    @answer
    def CreateDIChan(self, request: Any) -> None:
        self.state.channel(request, request.lines, "di")

    @answer
    def CreateDOChan(self, request: Any) -> None:
        self.state.channel(request, request.lines, "do")

    @answer
    def CreateCIAngEncoderChan(self, request: Any) -> None:
        self.state.channel(request, request.counter, "angle", settings=request)

    @answer
    def CreateCILinEncoderChan(self, request: Any) -> None:
        self.state.channel(request, request.counter, "linear", settings=request)

    @answer
    def CreateCIFreqChan(self, request: Any) -> None:
        self.state.channel(request, request.counter, "frequency", settings=request)

    @answer
    def CreateCICountEdgesChan(self, request: Any) -> None:
        self.state.channel(request, request.counter, "edges", settings=request)

    @answer
    def CfgSampClkTiming(self, request: Any) -> None:
        task = self.state.task(request)
        task.rate, task.source = request.rate, request.source
        task.continuous = request.sample_mode_raw == AcquisitionType.CONTINUOUS.value
        task.buffer = task.buffer or request.samps_per_chan

    @answer
    def CfgImplicitTiming(self, request: Any) -> None:
        task = self.state.task(request)
        task.continuous, task.buffer = True, request.samps_per_chan

    @answer
    def GetTimingAttributeDouble(self, request: Any) -> Any:
        task = self.state.task(request)
        # of a clock from outside the card only knows what it was told
        rate = task.rate if "PFI" in task.source else task.actual_rate
        return pb.GetTimingAttributeDoubleResponse(value=rate if request.attribute_raw == RATE else 0.0)

    @answer
    def SetBufferAttributeUInt32(self, request: Any) -> None:
        if request.attribute_raw == BUFFER:
            self.state.task(request).buffer = request.value

    # -- reading --------------------------------------------------------------------------------------------------

    @answer
    def SetReadAttributeInt32(self, request: Any) -> None:
        self.state.task(request).read_attributes[request.attribute_raw] = request.value_raw

    @answer
    def SetReadAttributeDouble(self, request: Any) -> None:
        self.state.task(request).read_attributes[request.attribute_raw] = request.value

    @answer
    def GetReadAttributeUInt32(self, request: Any) -> Any:
        ready = self.state.task(request).available()
        return pb.GetReadAttributeUInt32Response(value=ready if request.attribute_raw == AVAILABLE else 0)

    @answer
    def GetReadAttributeUInt64(self, request: Any) -> Any:
        total = self.state.task(request).acquired
        return pb.GetReadAttributeUInt64Response(value=total if request.attribute_raw == TOTAL else 0)

    @answer
    def GetReadAttributeString(self, request: Any) -> Any:
        """Channels to read: `task.read()` asks, and then for the type of each."""
        names = ", ".join(f"{c.card.name}/{c.terminal}" for c in self.state.task(request).channels)
        return pb.GetReadAttributeStringResponse(value=names if request.attribute_raw == CHANNELS else "")

    @answer
    def GetChanAttributeInt32(self, request: Any) -> Any:
        analogue = {CHANNEL_TYPE: ChannelType.ANALOG_INPUT.value, MEASUREMENT: UsageTypeAI.VOLTAGE.value}
        if self.state.task(request).channels[0].sort != "ai":
            raise Refused(-200452)
        return pb.GetChanAttributeInt32Response(value_raw=analogue.get(request.attribute_raw, 0))

    @answer
    def ReadAnalogF64(self, request: Any) -> Any:
        task = self.state.task(request)
        if not task.rate:
            now = task.card.now()
            values = [c.convert(now) for c in task.channels]
            return pb.ReadAnalogF64Response(read_array=values, samps_per_chan_read=1)
        count = self._await(request, task)
        times = [task.began + (task.taken + k + 1) / task.actual_rate for k in range(count)]
        task.taken += count
        values = [c.convert(at) for c in task.channels for at in times]
        status = 0 if count == request.num_samps_per_chan else -200284
        return pb.ReadAnalogF64Response(read_array=values, samps_per_chan_read=count, status=status)

    def _await(self, request: Any, task: Task) -> int:
        """How many of the samples asked for are there in time."""
        until = time.monotonic() + request.timeout
        while (ready := task.available()) < request.num_samps_per_chan and time.monotonic() < until:
            due = task.began + (task.taken + request.num_samps_per_chan) / (task.actual_rate or 1e-9) - task.card.now()
            time.sleep(max(1e-4, min(due, until - time.monotonic(), 0.01)))
            self.state.task(request)
        return min(ready, request.num_samps_per_chan)

    @answer
    def ReadDigitalLines(self, request: Any) -> Any:
        task = self.state.task(request)
        now = task.card.now()
        bits = bytes(c.card.input(c.terminal, now) >= 0.5 for c in task.channels)
        return pb.ReadDigitalLinesResponse(read_array=bits, samps_per_chan_read=1, num_bytes_per_samp=1)

    @answer
    def ReadCounterScalarF64(self, request: Any) -> Any:
        task = self.state.task(request)
        return pb.ReadCounterScalarF64Response(value=task.channels[0].position(task.card.now()))

    @answer
    def ReadCounterScalarU32(self, request: Any) -> Any:
        task = self.state.task(request)
        return pb.ReadCounterScalarU32Response(value=task.channels[0].pulses(task.card.now()) % 2**32)

    @answer
    def ReadCounterF64Ex(self, request: Any) -> Any:
        """The newest period, if the task was told to look there."""
        task = self.state.task(request)
        if task.read_attributes.get(RELATIVE) != ReadRelativeTo.MOST_RECENT_SAMPLE.value or not task.acquired:
            raise Refused(-200284)
        value = task.channels[0].frequency(task.card.now())
        return pb.ReadCounterF64ExResponse(read_array=[value], samps_per_chan_read=1)

    # -- writing --------------------------------------------------------------------------------------------------

    @answer
    def WriteAnalogF64(self, request: Any) -> Any:
        task = self._written(request)
        for channel, volts in zip(task.channels, request.write_array, strict=True):
            if not channel.low <= volts <= channel.high:
                raise Refused(-200561)
            channel.card.drive(channel.terminal, volts)
        return pb.WriteAnalogF64Response(samps_per_chan_written=1)

    @answer
    def WriteDigitalLines(self, request: Any) -> Any:
        task = self._written(request)
        for channel, bit in zip(task.channels, request.write_array, strict=True):
            channel.card.drive(channel.terminal, float(bit))
        return pb.WriteDigitalLinesResponse(samps_per_chan_written=1)

    def _written(self, request: Any) -> Task:
        task = self.state.task(request)
        if not task.running:
            if not request.auto_start:
                raise Refused(-200846)
            with self.state.lock:
                self.state.start(task)
        return task


class NiServer:
    """The server: `start`, `stop`, and `start` again at the same port, with what it had before."""

    def __init__(self, *cards: Card, port: int = 0) -> None:
        self.state = State(*cards)
        self.port = port
        self._server: grpc.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def card(self) -> Card:
        return next(iter(self.state.cards.values()))

    def start(self, host: str = "127.0.0.1") -> None:
        server = grpc.server(ThreadPoolExecutor(16), options=(("grpc.so_reuseport", 0),))
        rpc.add_NiDAQmxServicer_to_server(Service(self.state), server)
        self.port = server.add_insecure_port(f"{host}:{self.port}")
        server.start()
        self._server = server

    def stop(self) -> None:
        """As if the network were gone: calls that are under way end too."""
        server, self._server = self._server, None
        if server is not None:
            self.state.silent.clear()
            server.stop(0).wait(5)


@contextmanager
def served(*cards: Card, port: int = 0) -> Iterator[NiServer]:
    """A server for as long as the block lasts."""
    server = NiServer(*cards, port=port)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def main() -> None:
    """Serve one card with a sine on ai1, a square on port1/line7, an encoder on ctr0 and a frequency on ctr1."""
    parser = argparse.ArgumentParser(description="a make-believe NI gRPC device server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=31763)
    parser.add_argument("--card", default="Dev1", help="the card's name")
    given = parser.parse_args()
    card = Card(given.card)
    card.outside |= {
        "ai1": lambda t: 5.0 * math.sin(2 * math.pi * t),
        "port1/line7": lambda t: float(t % 1.0 < 0.5),
        "ctr0": lambda t: 1024.0 * math.sin(t),
        "ctr1": lambda t: 250.0 * t,
    }
    server = NiServer(card, port=given.port)
    server.start(given.host)
    print(f"{card.product} {card.name} at {given.host}:{server.port}", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    main()

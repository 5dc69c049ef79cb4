"""daq: what the options may say, how volts become values, and when a sample was taken. No library, no card."""

from __future__ import annotations

import random
import sys

import numpy as np
import pytest

from drivers import registry
from drivers.base import OptionError
from drivers.daq.driver import Daq
from drivers.daq.sample_clock import SampleClock
from drivers.daq.scaling import Line, Scaling, Table

AI = {"name": "x", "channel": "ai0"}
AO = {"name": "y", "channel": "ao0"}


def make(**options: object) -> Daq:
    return Daq("card", {"device": "Dev1", **options})


def channel(**more: object) -> dict[str, object]:
    return {"inputs": [{"name": "x", **more}]}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "drivers.card: give inputs, outputs or both"),
        ({"inputs": [AI], "serial": "1"}, "either device"),
        ({"inputs": [AI], "device": 3}, "drivers.card.device = 3: must be text"),
        ({"inputs": [AI], "speed": 3}, "drivers.card.speed is no option"),
        ({"inputs": [AI], "server": "here"}, "drivers.card.server = 'here': must be host:port"),
        ({"inputs": [AI], "mode": "fast"}, "drivers.card.mode = 'fast': must be one of on-demand, buffered"),
        ({"inputs": [AI], "rate": 20_000}, "drivers.card.rate = 20000: must be a number from 0.1 to 10000"),
        ({"inputs": [AI], "clock": "PFI0"}, "drivers.card.clock = 'PFI0': goes with mode"),
        ({"outputs": [AO], "mode": "buffered"}, "drivers.card.mode = 'buffered': needs an analogue input"),
        ({"inputs": "ai0"}, "drivers.card.inputs = 'ai0': must be a list of tables"),
        ({"inputs": [AI, {**AI, "name": "z"}]}, "x and z both use ai0"),
        ({"inputs": [AI, {**AI, "channel": "ai1"}]}, "two signals are called 'x'"),
        (channel(channel="Dev1/ai0"), "drivers.card.inputs.x.channel = 'Dev1/ai0': must be a terminal of the card"),
        (channel(channel="ao0"), "such as 'ai0', 'port0/line3', 'ctr0'"),
        ({"outputs": [{"name": "y", "channel": "ai0"}]}, "such as 'ao0', 'port0/line3'"),
        (channel(channel="ai0", volts=[5, -5]), "drivers.card.inputs.x.volts = [5, -5]: must be the lowest and"),
        (channel(channel="ai0", volts=[0, float("nan")]), "drivers.card.inputs.x.volts"),
        (channel(channel="ai0", terminal="bnc"), "must be one of default, rse, nrse, diff, pseudodiff"),
        (channel(channel="ai0", slope=0), "drivers.card.inputs.x.slope = 0: must be a number other than 0"),
        (channel(channel="ai0", slope=2.0, table=[[0, 0], [1, 1]]), "takes the place of slope"),
        (channel(channel="ai0", table=[[0, 0]]), "must be pairs of volts and value"),
        (channel(channel="ai0", table=[[0, 0], [0, 1]]), "the first numbers of the pairs must rise"),
        ({"outputs": [{**AO, "table": [[0, 0], [1, 1], [2, 0]]}]}, "the second numbers must rise or fall"),
        (channel(channel="port0/line0", slope=2.0), "drivers.card.inputs.x.slope is no option"),
        (channel(channel="ctr0"), "drivers.card.inputs.x.measure = None: must be one of angle, position, frequency"),
        (
            channel(channel="ctr0", measure="angle"),
            "drivers.card.inputs.x.pulses = None: must be a whole number from 1",
        ),
        (channel(channel="ctr0", measure="count", pulses=4), "drivers.card.inputs.x.pulses is no option"),
        (channel(channel="ctr0", measure="frequency", hertz=[0, 5]), "drivers.card.inputs.x.hertz = [0, 5]"),
        (channel(channel="ctr0", measure="position", distance=1e-6, decoding="x3"), "must be one of x1, x2, x4"),
        ({"outputs": [{**AO, "volts": [0, 5], "safe": -1.0}]}, "must be a finite number in [0.0, 5.0]"),
        ({"outputs": [{"name": "y", "channel": "port0/line0", "safe": 5}]}, "must be a finite number in [0.0, 1.0]"),
    ],
)
def test_wrong_options_are_told(options, told):
    with pytest.raises(OptionError) as caught:
        make(**options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("serial", ["", "0", "XYZ", "123456789", "-1"])
def test_a_serial_number_is_hex_digits(serial):
    with pytest.raises(OptionError, match="up to eight hex digits"):
        Daq("card", {"serial": serial, "inputs": [AI]})


def test_channels_by_name_or_in_a_list():
    force = {"channel": "ai0", "slope": 2.0, "unit": "N"}
    x = {"channel": "ctr1", "measure": "angle", "pulses": 100}
    listed = make(inputs=[{"name": "force", **force}, {"name": "x", **x}])
    named = make(inputs={"force": force, "x": x})
    assert listed.inputs == named.inputs
    assert [(s.name, s.unit) for s in named.inputs] == [("force", "N"), ("x", "rad")]


def test_an_output_reaches_as_far_as_its_volts():
    (valve,) = make(outputs=[{**AO, "slope": -10.0, "volts": [0, 5], "safe": -20.0}]).outputs
    assert (valve.low, valve.high, valve.safe, valve.default) == (-50.0, 0.0, -20.0, -20.0)


def test_a_twin_needs_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "nidaqmx", None)
    twin = registry.create("daq", "card", {"device": "Dev1", "inputs": [AI], "twin": {"x": 2.5}})
    values, stamps = np.zeros(1), np.zeros(1, np.int64)
    twin.open()
    assert twin.read(values, stamps)
    assert values[0] == 2.5


def test_scales_there_and_back():
    line, rising, falling = Line(4.0, -1.0), Table((0.0, 1.0, 3.0), (0.0, 10.0, 20.0)), Table((0.0, 5.0), (100.0, 0.0))
    scaling = Scaling([2, 0, 1], [line, rising, falling])
    values, stamps, raws = np.zeros(4), np.zeros(4, np.int64), np.zeros(3)
    scaling.to_values(np.array([0.5, 2.0, 1.0]), 77, values, stamps)
    assert values.tolist() == [15.0, 80.0, 1.0, 0.0]
    assert stamps.tolist() == [77, 77, 77, 0]
    scaling.to_raws(values, raws)
    assert raws.tolist() == [0.5, 2.0, 1.0]


def test_a_table_ends_where_it_ends():
    table = Table((0.0, 5.0), (100.0, 0.0))
    assert (table.value(-1.0), table.value(6.0), table.raw(200.0), table.raw(-5.0)) == (100.0, 0.0, 0.0, 5.0)


@pytest.mark.parametrize("drift", [-1e-4, 0.0, 1e-4])
def test_samples_are_dated_whatever_the_delay(drift):
    """A card that is fast or slow by 100 ppm, and reads that are late by 0.1 ms at best and by 20 ms now and then."""
    dice = random.Random(1)
    clock, period = SampleClock(1e6), 1e6 * (1.0 + drift)
    errors, taken = [], 0
    while taken < 60_000:
        late = dice.choice([0.1e6, 0.2e6, 0.5e6, 20e6]) if dice.random() < 0.3 else 0.1e6
        count = 1 + int(late // 1e6)
        taken += count
        now = int(5e9 + taken * period + late % 1e6 + 0.1e6)
        errors.append(clock.newest(count, now) - (5e9 + taken * period))
    settled = np.array(errors[100:])
    assert settled.min() >= 0.0
    assert settled.max() < 0.25e6


def test_no_sample_is_newer_than_its_reading():
    clock = SampleClock(1e6)
    assert clock.newest(1, 10_000_000) == 10_000_000
    assert clock.newest(5, 14_000_000) == 14_000_000
    assert clock.newest(1, 19_000_000) == pytest.approx(15_000_000, abs=10_000)

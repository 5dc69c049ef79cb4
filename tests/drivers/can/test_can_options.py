"""Options of the can driver: what the database gives, what the config changes, and what is refused in which words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import cli

from drivers.base import OptionError
from drivers.can.bus import Can
from drivers.registry import create

DBC = str(Path(__file__).with_name("machine.dbc"))


def made(**options: Any) -> Can:
    return Can("ecu", {"dbc": DBC, "channel": "can0", **options})


def test_channels_come_from_the_database() -> None:
    driver = made(receive=["EngineData"], send=["MachineState"])
    inputs = {s.name: s for s in driver.inputs}
    assert list(inputs) == [
        f"enginedata.{n}" for n in ("enginespeed", "oiltemp", "torque", "gear", "counter", "flag")
    ]  # in the database's order
    speed = inputs["enginedata.enginespeed"]
    assert (speed.unit, speed.low, speed.high, speed.default) == ("rpm", 0.0, 8031.875, 0.0)
    assert speed.doc == "EngineData.EngineSpeed Speed of the crankshaft"
    oil = inputs["enginedata.oiltemp"]
    assert (oil.unit, oil.low, oil.high, oil.default, oil.safe) == ("degC", -40.0, 210.0, 20.0, 20.0)
    gear = inputs["enginedata.gear"]
    assert (gear.low, gear.high) == (-1.0, 6.0)
    assert gear.doc.endswith("-1 = Reverse, 0 = Neutral, 1 = First")
    assert (inputs["enginedata.counter"].low, inputs["enginedata.counter"].high) == (0.0, 255.0)  # what 8 bits hold
    assert inputs["enginedata.counter"].unit == ""
    outputs = {s.name: s for s in driver.outputs}
    assert outputs["machinestate.mode"].safe == 3.0


def test_a_start_value_beyond_the_range_is_no_safe_value() -> None:
    """Torque starts at 0x7FF and Load at 0xFFFF, "not available": neither may become a command."""
    driver = made(receive=["EngineData"], send=["MachineState"])
    torque = next(s for s in driver.inputs if s.name.endswith("torque"))
    load = next(s for s in driver.outputs if s.name.endswith("load"))
    assert torque.default == 0.0
    assert (load.safe, load.low) == (5.0, 5.0)  # nearest to zero within its range


def test_the_config_has_the_last_word() -> None:
    driver = made(
        receive=["EngineData"],
        send={"MachineState": {"period_ms": 5}},
        channels={
            "speed": "EngineData.EngineSpeed",
            "load": {"signal": "MachineState.Load", "unit": "kN", "low": 0, "high": 9, "default": 1, "safe": 2},
        },
    )
    assert driver.inputs[0].name == "speed"
    load = driver.outputs[3]
    assert (load.name, load.unit, load.low, load.high, load.default, load.safe) == ("load", "kN", 0, 9, 1, 2)


def test_a_multiplexer_is_received_but_sent_in_turn() -> None:
    driver = made(receive=["Diagnosis"], send=["MachinePages"])
    assert "diagnosis.page" in [s.name for s in driver.inputs]
    assert [s.name for s in driver.outputs] == [f"machinepages.{n}" for n in ("common", "front", "rear", "tilt")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give receive"),
        ({"receive": ["EngineDat"]}, r"'EngineDat' is no message of .*machine.dbc: did you mean 'EngineData'"),
        ({"receive": [3]}, "'3' is no message"),
        ({"receive": 3}, r"receive = 3: must be a list such as \[\"EngineData\"\]"),
        ({"receive": {"EngineData": 3}}, "receive.EngineData = 3: must be a table with the keys timeout_ms"),
        ({"receive": {"EngineData": {"timeout": 3}}}, "did you mean 'timeout_ms'"),
        ({"receive": {"EngineData": {"timeout_ms": -1}}}, "receive.EngineData.timeout_ms = -1: must be a number"),
        ({"send": ["EngineData"], "receive": ["EngineData"]}, "EngineData stands in receive already"),
        ({"receive": ["Wide"]}, "Wide has 24 bytes: that takes CAN FD, so write fd = true"),
        ({"send": ["Analog"]}, "no cycle time .*write send = { Analog = { period_ms = 10.0 } }"),
        ({"receive": ["EngineData"], "bitrate": 500000}, "ip link set can0 up type can bitrate 500000"),
        ({"receive": ["EngineData"], "chanel": 1}, "did you mean"),
        ({"receive": ["EngineData"], "channel": ""}, "channel = '': must name the bus"),
        ({"receive": ["EngineData"], "channel": True}, "channel = True: must name the bus"),
        ({"receive": ["EngineData"], "settings": 1}, "settings = 1: must be a table"),
        ({"receive": ["EngineData"], "channels": 1}, "channels = 1: must be a table"),
        ({"receive": ["EngineData"], "channels": {"x": "Speed"}}, "channels.x.signal = 'Speed': must name a signal"),
        ({"receive": ["EngineData"], "channels": {"x": "EngineData.Sped"}}, "x: EngineData.Sped is no signal"),
        ({"receive": ["EngineData"], "channels": {"X y": "EngineData.Gear"}}, "signal name 'X y'"),
        ({"receive": ["EngineData"], "channels": {"a.b": {"signal": "EngineData.Gear", "low": 7}}}, "range"),
        ({"receive": ["EngineData"], "channels": {"a": {"signal": "EngineData.Gear", "low": "x"}}}, "must be a number"),
        ({"receive": ["EngineData"], "channels": {"enginedata.gear": "EngineData.Flag"}}, "two signals are called"),
        ({"send": ["MachinePages"], "channels": {"p": "MachinePages.Axle"}}, "pages are sent in turn"),
        ({"receive": ["EngineData"], "dbc": "/nowhere/x.dbc"}, r"/nowhere/x.dbc': cannot be read \(No such file"),
        ({"receive": ["EngineData"], "dbc": __file__}, "is no CAN database that cantools can read"),
        ({"receive": ["EngineData"], "dbc": 5}, "dbc = 5: must be text"),
    ],
)
def test_what_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        made(**options)
    assert str(caught.value).startswith("drivers.ecu")
    assert "\n" not in str(caught.value)


def test_a_database_lies_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.dbc").write_bytes(Path(DBC).read_bytes())
    options = {"dbc": "sub/x.dbc", "channel": "can0", "receive": ["EngineData"]}
    assert len(create("can", "ecu", options, tmp_path).inputs) == 6
    with pytest.raises(OptionError, match="cannot be read"):
        create("can", "ecu", options)
    (tmp_path / "n.toml").write_text(
        '[drivers.ecu]\nkind = "can"\ndbc = "sub/x.dbc"\nchannel = "can0"\nreceive = ["EngineData"]\n'
        '[signals.inputs."pendulum.shoulder.torque"]\nfrom = "ecu.enginedata.torque"\n'
    )
    answer = cli("check", tmp_path / "n.toml")
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_faults_in_messages_that_nobody_wants_do_not_matter(tmp_path: Path) -> None:
    bad = tmp_path / "bad.dbc"
    bad.write_text(
        'VERSION ""\nBU_: A\nBO_ 1 Good: 8 A\n SG_ X : 0|8@1+ (1,0) [0|0] "" A\n'
        'BO_ 2 Bad: 1 A\n SG_ Y : 4|8@1+ (1,0) [0|0] "" A\n'
    )
    assert len(made(dbc=str(bad), receive=["Good"]).inputs) == 1
    with pytest.raises(OptionError, match=r"Bad: The signal Y does not fit in message Bad"):
        made(dbc=str(bad), receive=["Bad"])

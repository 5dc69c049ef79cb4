"""Write docs/config.md: every key of a configuration, generated from the models, so that it matches the code.

python tools/config_docs.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hilnode.config.config import schema

PAGE = Path(__file__).resolve().parent.parent / "docs" / "config.md"

EXAMPLE = """\
#:schema ./hilnode.schema.json

[node]
name = "pendulum-bench"
rate_hz = 1000.0

[plant]
kind = "double_pendulum"

[drivers.stick]
kind = "udp"
listen = "127.0.0.1:5005"         # a key of the udp driver
inputs = ["x"]

[drivers.valve]
kind = "udp"
send = "127.0.0.1:5006"
outputs = ["ao0"]

[signals.inputs."pendulum.shoulder.torque"]
from = "stick.x"
scale = 5.0                       # full deflection is 5 N*m
stale = "ramp"

[signals.outputs."valve.ao0"]
from = "pendulum.elbow.angle"
clamp = [-10.0, 10.0]

[[signals.stimulus]]
signal = "pendulum.elbow.torque"
kind = "chirp"
amplitude = 0.2
f0_hz = 0.1
f1_hz = 20.0
seconds = 60.0

[[safety.alarms]]
signal = "pendulum.elbow.angle"
outside = [-3.0, 3.0]
for_ms = 20.0
action = "trip"
"""

INTRO = f"""\
# Configuration

<!-- Written by tools/config_docs.py from the models in hilnode/config/tables/: change it there. -->

A node is described by one TOML file. Every table and nearly every key may be left out: an empty file runs the default
plant with no devices. Nothing unknown is accepted, nothing is converted silently, and every number is finite.

```toml
{EXAMPLE}```

The first line lets an editor complete keys and check values (Even Better TOML and others read
`configs/hilnode.schema.json`, which `python -m hilnode.config` writes).

All problems are reported at once, with file, line and a way out:

```
configs/a.toml:12: node.rate_hz = -3: must be greater than 0. Try rate_hz = 1000.
```

**Names.** A signal is lower-case words joined by dots, in quotes when it stands in a heading:
`[signals.inputs."pendulum.shoulder.torque"]`. A device channel is `driver.channel`, where the driver is named by its
own heading `[drivers.NAME]`.

**Units.** A value is converted from the channel's unit (or `unit`, where given) into the plant's, or back for outputs;
then `scale` and `offset` apply. Where either side is a plain number there is nothing to convert, and `scale` carries
the meaning. Where `scale` is a calibration between different quantities (volts to metres), give `unit` the plant's
unit. An angle is a quantity of its own: `rpm` becomes `rad/s`, but not `Hz`. Units that differ need pint:
`pip install hilnode[units]`.

A default of *required* means that the key must be given; a dash means that nothing happens without it.
"""

KINDS = {"number": "number", "integer": "whole number", "string": "text", "boolean": "true, false", "object": "table"}


def value_text(key: dict[str, Any]) -> str:
    """What may stand behind a key."""
    if "const" in key:
        return f'`"{key["const"]}"`'
    if "enum" in key:
        return ", ".join(f'`"{word}"`' for word in key["enum"])
    if "anyOf" in key:
        return ", ".join(value_text(k) for k in key["anyOf"])
    if "prefixItems" in key:
        return "[low, high]"
    limits = [
        f"{sign} {key[name]:.12g}"
        for name, sign in (("exclusiveMinimum", ">"), ("minimum", "≥"), ("exclusiveMaximum", "<"), ("maximum", "≤"))
        if name in key and abs(key[name]) < 1e18
    ]
    return " ".join([KINDS[key["type"]], ", ".join(limits)]).strip()


def default_text(name: str, key: dict[str, Any], required: list[str]) -> str:
    """What holds without the key."""
    if name in required:
        return "*required*"
    if "default" not in key:
        return "–"
    value = key["default"]
    return f"`{json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)}`"


def key_rows(table: dict[str, Any], leave_out: frozenset[str] = frozenset()) -> Iterator[str]:
    """The reference of one table, without the tables inside it."""
    required = table.get("required", [])
    rows = [
        f"| `{name}` | {value_text(key)} | {default_text(name, key, required)} | {key['description']} |"
        for name, key in sorted(table["properties"].items(), key=lambda item: item[0] != "from")
        if name not in leave_out and inner_table(name, key) is None
    ]
    if rows:
        yield "| key | value | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows)


def inner_table(name: str, key: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """How a table within a table is headed, and what holds its description."""
    if "$ref" in key:
        return name, key
    if key.get("type") == "array" and "items" in key:
        return name, key["items"]
    for inner in key.get("patternProperties", {}).values():
        if "$ref" in inner:
            holder = {"drivers": "NAME", "inputs": '"SIGNAL"', "outputs": '"DRIVER.CHANNEL"'}[name]
            return f"{name}.{holder}", inner
    return None


def sections(made: dict[str, Any], path: str, table: dict[str, Any]) -> Iterator[str]:
    """The table's own keys, then every table within it."""
    yield from key_rows(table)
    for name, key in table["properties"].items():
        found = inner_table(name, key)
        if found is None:
            continue
        heading, inner = f"{path}{found[0]}", found[1]
        brackets = f"[[{heading}]]" if key.get("type") == "array" else f"[{heading}]"
        yield f"## `{brackets}`"
        if "oneOf" in inner:
            yield key["description"]
            yield from union_sections([made["$defs"][k["$ref"].rpartition("/")[2]] for k in inner["oneOf"]])
            continue
        model = made["$defs"][inner["$ref"].rpartition("/")[2]]
        yield model["description"]
        yield from sections(made, f"{heading}.", model)


def union_sections(kinds: list[dict[str, Any]]) -> Iterator[str]:
    """The keys all kinds share, then those of each kind."""
    shared = frozenset.intersection(*(frozenset(k["properties"]) for k in kinds))
    own = frozenset(kinds[0]["properties"]) - shared
    yield from key_rows(kinds[0], own | {"kind"})
    for kind in kinds:
        yield f'`kind = "{kind["properties"]["kind"]["const"]}"`: {kind["description"]}'
        yield from key_rows(kind, shared)


def render() -> str:
    """The whole page."""
    made = json.loads(schema())
    return "\n\n".join([INTRO.rstrip("\n"), *sections(made, "", made)]) + "\n"


def main() -> int:
    PAGE.write_text(render(), encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

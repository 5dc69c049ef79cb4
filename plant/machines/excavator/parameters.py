"""Parameters of the machine, each with its unit, range and source: those of `a924.toml`, or a user's own.

Overrides are text with a unit, `{"boom.mass" = "1.7 t", "pump.flow" = "400 l/min"}`, or the table of a file of your own
with a value, a unit and a source for each entry; any unit of the same kind will do. Names that it leaves out stay as
they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hilnode.core.signals import nearest
from hilnode.core.tables import FileTable, read_beside

FILE = "a924.toml"
ENTRY_KEYS = {"value", "unit", "source"}
Number = float | tuple[float, ...]

UNITS: dict[str, dict[str, float]] = {  # kind -> unit -> factor to SI
    "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
    "kg": {"kg": 1.0, "t": 1e3},
    "rad": {"rad": 1.0, "deg": math.pi / 180},
    "m/s": {"m/s": 1.0, "km/h": 1 / 3.6, "mm/s": 1e-3},
    "rad/s": {"rad/s": 1.0, "rpm": math.pi / 30, "deg/s": math.pi / 180},
    "Pa": {"Pa": 1.0, "kPa": 1e3, "MPa": 1e6, "bar": 1e5},
    "m^3/s": {"m^3/s": 1.0, "l/min": 1e-3 / 60},
    "N": {"N": 1.0, "kN": 1e3},
    "N m": {"N m": 1.0, "kN m": 1e3},
    "N/m": {"N/m": 1.0, "kN/m": 1e3, "MN/m": 1e6},
    "N s/m": {"N s/m": 1.0, "kN s/m": 1e3},
    "W": {"W": 1.0, "kW": 1e3},
    "s": {"s": 1.0, "ms": 1e-3},
    "m^3": {"m^3": 1.0, "l": 1e-3},
    "1": {"1": 1.0, "": 1.0, "%": 1e-2},
}


class ParameterError(ValueError):
    """A parameter that cannot be: name, value, what is allowed."""


@dataclass(frozen=True)
class Parameter:
    """One number or point."""

    value: Number  # SI
    unit: str
    low: float
    high: float
    source: str


def _table() -> dict[str, Parameter]:
    """The parameters of FILE, which is the one place where they stand."""
    made: dict[str, Parameter] = {}
    for name, entry in _entries(read_beside(__file__, FILE)):
        if set(entry) != {"value", "unit", "low", "high", "source"} or not str(entry["source"]).strip():
            raise ParameterError(f"{FILE}: {name} must have value, unit, low, high and source")
        base, factor = next((kind, table[entry["unit"]]) for kind, table in UNITS.items() if entry["unit"] in table)
        value = entry["value"]
        si = tuple(v * factor for v in value) if isinstance(value, list) else value * factor
        made[name] = Parameter(si, base, entry["low"] * factor, entry["high"] * factor, entry["source"])
    return made


def _entries(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and what they are given, out of tables in tables; one with a value is an entry."""
    for key, given in table.items():
        name = f"{before}{key}"
        if isinstance(given, Mapping) and not (ENTRY_KEYS & set(given)):
            yield from _entries(given, f"{name}.")
        else:
            yield name, given


TABLE = _table()
"""Every parameter with its default."""


class Parameters:
    """The table with overrides; `p["boom.mass"]` is a float, `p.point("boom.pin")` a tuple, both SI."""

    def __init__(self, overrides: Mapping[str, Any] | None = None) -> None:
        self._values = {name: parameter.value for name, parameter in TABLE.items()}
        given = overrides or {}
        where = f"{given.file}: " if isinstance(given, FileTable) else ""
        for name, entry in _entries(given):
            if name not in TABLE:
                raise ParameterError(f"{where}no parameter {name!r} of the excavator: {nearest(name, list(TABLE))}")
            try:
                self._values[name] = _read(name, _as_text(name, entry) if isinstance(entry, Mapping) else entry)
            except ParameterError as error:
                raise ParameterError(f"{where}{error}") from error
        try:
            _check(self)
        except ParameterError as error:
            raise ParameterError(f"{where}{error}") from error

    def __getitem__(self, name: str) -> float:
        value = self._values[name]
        if isinstance(value, tuple):
            raise TypeError(f"{name} has {len(value)} numbers: ask for point({name!r})")
        return value

    def point(self, name: str) -> tuple[float, ...]:
        value = self._values[name]
        return value if isinstance(value, tuple) else (value,)


def _as_text(name: str, entry: Mapping[str, Any]) -> str:
    """An entry of a file, with value, unit and source, as text with a unit."""
    for key in entry:
        if key not in ENTRY_KEYS:
            raise ParameterError(f"{name}.{key} is no key of a parameter: it has value, unit and source")
    for key in sorted(ENTRY_KEYS):
        if key not in entry:
            raise ParameterError(f"{name} has no {key}: {name} = {{ value = ..., unit = ..., source = ... }}")
    source = entry["source"]
    if not isinstance(source, str) or not source.strip():
        raise ParameterError(f"{name}.source = {source!r}: must say where the number comes from")
    value, unit = entry["value"], entry["unit"]
    values = value if isinstance(value, list) else [value]
    if not values or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        raise ParameterError(f"{name}.value = {value!r}: must be a number, or a list of numbers")
    if not isinstance(unit, str):
        raise ParameterError(f"{name}.unit = {unit!r}: must be a unit in quotes, such as {TABLE[name].unit!r}")
    return f"{', '.join(repr(v) for v in values)} {unit if unit != '1' else ''}".strip()


_TEXT = re.compile(r"\s*((?:[-+0-9.,\s()]|[eE](?=[-+0-9]))+?)\s*((?![eE][-+0-9])[a-zA-Z%][a-zA-Z0-9/^ %]*)?\s*")


def _read(name: str, given: Any) -> Number:
    """An override in SI: text with a unit, or for plain numbers a plain number."""
    known = TABLE[name]
    units = UNITS[known.unit]
    count = len(known.value) if isinstance(known.value, tuple) else 1
    what = "a number" if count == 1 else f"{count} numbers with commas"
    want = f"{what} and a unit ({', '.join(u for u in units if u)})"
    text = str(given) if known.unit == "1" and isinstance(given, (int, float)) else given
    match = _TEXT.fullmatch(text) if isinstance(text, str) else None
    unit = (match.group(2) or "").strip() if match else ""
    if match is None or unit not in units:
        raise ParameterError(f"{name} = {given!r}: must be {want}, such as {_shown(known)!r}")
    try:
        values = tuple(float(v) * units[unit] for v in match.group(1).strip("() ").split(","))
    except ValueError as error:
        raise ParameterError(f"{name} = {given!r}: must be {want}") from error
    if len(values) != count or not all(math.isfinite(v) and known.low <= v <= known.high for v in values):
        raise ParameterError(f"{name} = {given!r}: must be {want} from {known.low:g} to {known.high:g} {known.unit}")
    return values if isinstance(known.value, tuple) else values[0]


def _shown(known: Parameter) -> str:
    values = known.value if isinstance(known.value, tuple) else (known.value,)
    return f"{', '.join(f'{v:g}' for v in values)} {known.unit}".strip()


def _check(p: Parameters) -> None:
    """What one number alone cannot tell."""
    for name in ("boom", "stick", "bucket"):
        closed, opened = p.point(f"{name}.cylinder.lengths")
        if not 0 < opened - closed < closed:
            raise ParameterError(
                f"{name}.cylinder.lengths {closed:g}, {opened:g} m: a cylinder of this stroke needs a closed length "
                f"above {opened - closed:g} m and below the open one"
            )
        if not p[f"{name}.cylinder.rod"] < p[f"{name}.cylinder.bore"]:
            raise ParameterError(f"{name}.cylinder.rod must be thinner than its bore")
    if not p["axle.rear"] < p["axle.front"]:
        raise ParameterError("axle.rear must lie behind axle.front")
    if not p["engine.idle"] < p["engine.rated"]:
        raise ParameterError("engine.idle must be slower than engine.rated")
    if not p["bucket.struck"] <= p["bucket.heaped"]:
        raise ParameterError("bucket.struck must not be more than bucket.heaped")

"""Spellings of units in foreign files and devices, and what they are called here."""

from __future__ import annotations

WORDS = {
    "-": "",
    "°": "deg",
    "°C": "degC",
    "°F": "degF",
    "°/s": "deg/s",
    "1/min": "rpm",
    "U/min": "rpm",
    "r/min": "rpm",
    "m/s²": "m/s^2",
    "m³/h": "m^3/h",
    "l/min": "L/min",
}


def plain(unit: str | None) -> str:
    """The unit in our words; one that is not in the table as it stands."""
    text = (unit or "").strip()
    return WORDS.get(text, text)

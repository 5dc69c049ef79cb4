"""Units as other people's files and devices write them, and how they are written here."""

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

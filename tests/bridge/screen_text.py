"""What a textual app shows, as lines of text: read from the SVG that it exports."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

CELL = 12.2  # width of a character in the SVG


def text_of(app: Any) -> str:
    rows: dict[float, list[tuple[float, str]]] = {}
    for element in ElementTree.fromstring(app.export_screenshot()).iter("{http://www.w3.org/2000/svg}text"):
        if element.get("class", "").endswith("-title"):
            continue
        place = float(element.get("x", "0")), (element.text or "").replace("\xa0", " ")
        rows.setdefault(float(element.get("y", "0")), []).append(place)
    lines = []
    for _, pieces in sorted(rows.items()):
        line = ""
        for x, piece in sorted(pieces):
            line = line.ljust(round(x / CELL)) + piece
        lines.append(line.rstrip())
    return "\n".join(lines)

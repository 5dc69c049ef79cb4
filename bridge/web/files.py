"""The page's static files, read once at start into a table. Nothing else is served, so no path can escape."""

from __future__ import annotations

import gzip
import mimetypes
import os
from dataclasses import dataclass
from pathlib import Path

from websockets.datastructures import Headers
from websockets.http11 import Response

STATIC = Path(os.environ.get("HILNODE_WEB_STATIC") or Path(__file__).resolve().parent / "static")
"""The built page; another folder while somebody works on it."""

ROUTES = ("/", "/signals", "/timing", "/health", "/operator")
"""What the page itself tells apart: all are one file."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), usb=(), serial=(), gamepad=(self)",
}
SMALLEST_PACKED = 1024  # [bytes] below this compressing gains nothing
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".css": "text/css", ".html": "text/html"}
_REASONS = {200: "OK", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


@dataclass(frozen=True)
class File:
    """One file, plain and compressed (empty: not worth it)."""

    type: str
    body: bytes
    packed: bytes
    cache: str


class Files:
    """All files below a folder, by the path in a request."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._table = {
            "/" + path.relative_to(folder).as_posix(): _read(path)
            for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink()
        }
        page = self._table.get("/index.html")
        self.complete = page is not None
        if page:
            self._table |= dict.fromkeys(ROUTES, page)

    def answer(self, path: str, accepted: str) -> Response:
        """The file, or 404; `accepted` is the request's Accept-Encoding."""
        file = self._table.get(path)
        if file is None:
            if path == "/" and not self.complete:
                return plain(503, "the page was not built into this installation: install hilnode from its wheel")
            return plain(404, "there is no such file")
        packed = bool(file.packed) and "gzip" in accepted
        body = file.packed if packed else file.body
        headers = {"Content-Type": file.type, "Cache-Control": file.cache, "Vary": "Accept-Encoding"}
        return _response(200, headers | ({"Content-Encoding": "gzip"} if packed else {}), body)


def plain(status: int, line: str) -> Response:
    """An answer in words."""
    headers = {"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store"}
    return _response(status, headers, line.encode() + b"\n")


def _response(status: int, headers: dict[str, str], body: bytes) -> Response:
    whole = {**headers, **SECURE, "Content-Length": str(len(body)), "Connection": "close"}
    return Response(status, _REASONS[status], Headers(whole), body)


def _read(path: Path) -> File:
    body = path.read_bytes()
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    if kind.startswith("text/") or kind == "image/svg+xml":
        kind += "; charset=utf-8"
    packed = gzip.compress(body, 6, mtime=0) if len(body) >= SMALLEST_PACKED else b""
    named_by_content = path.parent.name == "assets"
    cache = "public, max-age=31536000, immutable" if named_by_content else "no-cache"
    return File(kind, body, packed if len(packed) < 0.9 * len(body) else b"", cache)

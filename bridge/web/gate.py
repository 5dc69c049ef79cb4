"""Access control of the web server: checks of each request before it is served, and counts of refusals.

- Host: on loopback it must be a name of this PC. A page of somebody else's, whose name was made to point here (DNS
  rebinding), has another one.
- Origin: the stream is for the page that this server gave out, so both must name the same host.
- Token: beyond loopback; compared in constant time. A page learns nothing of a handshake that was refused, so the
  stream is opened for it and closed at once, with a code of its own.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from websockets.http11 import Request, Response

from bridge.web.files import Files, plain

STREAM = "/stream"
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only programs on this PC can reach a server that is bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass
class Gate:
    """The checks of one server, bound to `host`; beyond loopback there must be a token."""

    host: str
    token: str
    files: Files
    refused: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if not self.token and not is_loopback(self.host):
            raise ValueError(f"{self.host} can be reached from other PCs: that needs a token")

    def look(self, request: Request) -> Response | None:
        """The answer to a request, or None: it is let in to the stream."""
        try:
            return self._checked(request)
        except ValueError:  # a Host, path or query that is none
            return self._refuse("malformed", "this request makes no sense")

    def _checked(self, request: Request) -> Response | None:
        parts = urlsplit(request.path)
        hosts, origins = request.headers.get_all("Host"), request.headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_known(hosts[0]):
            return self._refuse("host", "this server is not known under that name")
        if len(origins) > 1 or (origins and not _is_same(origins[0], hosts[0])):
            return self._refuse("origin", "only the page that this server gives out may come here")
        if parts.path != STREAM:
            answer = self.files.answer(parts.path, request.headers.get("Accept-Encoding", ""))
            self.refused["path"] += answer.status_code == 404
            return answer
        return None

    def _is_known(self, host: str) -> bool:
        name = urlsplit(f"//{host}").hostname or ""
        return not is_loopback(self.host) or name in LOCAL_NAMES or name == self.host

    def has_token(self, path: str) -> bool:
        """Whether a request that was let in to the stream has shown the token; if not, it is counted."""
        if not self.token:
            return True
        try:
            given = parse_qs(urlsplit(path).query, max_num_fields=8).get("token", [])
        except ValueError:
            given = []
        good = len(given) == 1 and hmac.compare_digest(given[0].encode(), self.token.encode())
        self.refused["token"] += not good
        return good

    def _refuse(self, reason: str, why: str) -> Response:
        self.refused[reason] += 1
        return plain(403, why)


def _is_same(origin: str, host: str) -> bool:
    parts = urlsplit(origin)
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()

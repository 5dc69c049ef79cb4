"""Who is let in, and which files there are: without a network."""

import gzip

import pytest
from web_page import placeholder
from websockets.datastructures import Headers
from websockets.http11 import Request

from bridge.web.files import ROUTES, SECURE, Files
from bridge.web.gate import Gate

HERE = "127.0.0.1:8080"
TOKEN = "correct-horse-battery"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(placeholder(tmp_path_factory.mktemp("static") / "page"))


@pytest.fixture
def gate(files):
    return Gate("127.0.0.1", "", files)


@pytest.fixture
def outer(files):
    return Gate("0.0.0.0", TOKEN, files)


def ask(gate: Gate, path: str = "/", host: str = HERE, **headers: str):
    """The status of an answer, 101 where the stream is opened."""
    answer = gate.look(Request(path, Headers({"Host": host, **headers})))
    return answer.status_code if answer else 101


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_is_the_page(gate, path):
    answer = gate.look(Request(path + "?x=1", Headers({"Host": HERE})))
    assert answer.body == b"<!doctype html><title>hilnode</title>"
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-cache"


def test_every_answer_is_secure(gate):
    for path in ("/", "/assets/index-1a2b.js", "/nothing"):
        answer = gate.look(Request(path, Headers({"Host": HERE})))
        assert SECURE.items() <= dict(answer.headers.raw_items()).items()
        assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_built_files_are_kept_by_the_browser_and_compressed(gate):
    asked = Headers({"Host": HERE, "Accept-Encoding": "gzip, br"})
    answer = gate.look(Request("/assets/index-1a2b.js", asked))
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.headers["Content-Type"].startswith("text/javascript")
    assert gzip.decompress(answer.body) == b"export const x = 1;\n" * 200
    plain = gate.look(Request("/assets/index-1a2b.js", Headers({"Host": HERE})))
    assert plain.body == gzip.decompress(answer.body)


@pytest.mark.parametrize(
    "path",
    [
        *("/../gate.py", "/assets/../../gate.py", "//etc/passwd", "/%2e%2e/gate.py", "/assets/", "/assets"),
        *("/secret.txt", "/index.html/..", "/.", "/\\..\\gate.py", "/stream/", "http://elsewhere/secret"),
    ],
)
def test_no_path_leads_out(gate, path):
    assert ask(gate, path) == 404
    assert gate.refused == {"path": 1}


@pytest.mark.parametrize("host", [HERE, "localhost:8080", "[::1]:8080", "localhost", "LOCALHOST:9999"])
def test_names_of_this_pc_are_known(gate, host):
    assert ask(gate, host=host) == 200
    assert ask(gate, "/stream", host=host) == 101


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8080", "192.168.0.7:8080", "", "[::", "a@b"])
def test_a_name_that_was_made_to_point_here_is_refused(gate, host):
    assert ask(gate, host=host) == ask(gate, "/stream", host=host) == 403
    assert gate.refused.total() == 2


def test_two_hosts_or_none_are_refused(gate):
    twice = Headers()
    twice["Host"] = HERE
    twice["Host"] = "evil.example"
    for headers in (twice, Headers()):
        assert gate.look(Request("/stream", headers)).status_code == 403
    assert gate.refused == {"host": 2}


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:81", "null", "", "file://", "https://127.0.0.1:8080.evil"]
)
def test_another_page_is_refused(gate, origin):
    assert ask(gate, "/stream", Origin=origin) == 403
    assert gate.refused == {"origin": 1}


def test_its_own_page_is_let_in(gate):
    assert ask(gate, "/stream", Origin=f"http://{HERE}") == 101
    assert ask(gate, "/stream") == 101  # a program has no origin


@pytest.mark.parametrize(
    "query",
    [
        *("", "?token=", "?token=wrong", f"?token={TOKEN}x", f"?token={TOKEN}&token={TOKEN}", f"?Token={TOKEN}"),
        "?" + "&".join(f"a{k}=1" for k in range(20)),
    ],
)
def test_without_the_token_the_stream_stays_shut(outer, query):
    assert ask(outer, "/stream" + query, host="lab-pc:8080") == 101  # the page is told by the code of the end
    assert not outer.has_token("/stream" + query)
    assert outer.refused == {"token": 1}


def test_with_the_token_it_opens_under_any_name(outer):
    assert ask(outer, f"/stream?token={TOKEN}", host="lab-pc:8080", Origin="http://lab-pc:8080") == 101
    assert outer.has_token(f"/stream?token={TOKEN}")
    assert ask(outer, "/", host="lab-pc:8080") == 200  # the page itself is no secret


def test_beyond_this_pc_there_must_be_a_token(files):
    for host in ("0.0.0.0", "192.168.0.7", "lab-pc", "::"):
        with pytest.raises(ValueError, match="needs a token"):
            Gate(host, "", files)


def test_an_installation_without_the_page_says_so(tmp_path):
    gate = Gate("127.0.0.1", "", Files(tmp_path))
    assert ask(gate) == 503
    assert ask(gate, "/stream") == 101

"""Nobody without the token, from another site or under another name is answered, and nothing outside is read."""

from __future__ import annotations

import contextlib
import http.client
import logging
import select
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.each import each
from theodolite.errors import BadInput
from theodolite.serving.guard import LARGEST, NEVER_BUSY, bound_to, explained
from theodolite.serving.serve import serve

from .conftest import SECRET, Client

ADDRESSES = ["/", "/page.css", "/page.js", "/report?place=survey", "/api/places", "/api/runs?place=runs", "/nothing"]


def test_the_address_opens_the_page_and_its_cookie_everything_else(client):
    first = client.send(f"/?token={client.token}", token=None)
    assert first.status == 200
    assert first.headers["set-cookie"].lower().count("httponly") == 1
    assert "samesite=strict" in first.headers["set-cookie"].lower()
    for address in ADDRESSES[:-1]:
        assert client.send(address).status == 200, address


@pytest.mark.parametrize("token", [None, "x", "wrong" * 8, "é"])
def test_without_the_token_nothing_is_answered(client, token):
    for address in ADDRESSES:
        sent = client.send(address, token=None if token is None else token.encode().decode("latin-1"))
        assert sent.status == 403, address
        assert "token" in sent.json["error"]
    assert client.send("/?token=", token=None).status == 403
    assert client.send("/?token=wrong").status == 403  # a wrong one counts, whatever the cookie says


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example:{port}"]
)
def test_a_foreign_name_for_this_machine_is_refused(client, host):
    sent = client.send("/api/places", headers={"Host": host.format(port=client.page.port)})
    assert sent.status in (400, 421)
    assert b"places" not in sent.body


def test_every_name_of_this_machine_is_ours(client):
    for host in ("localhost", "127.0.0.1", "LOCALHOST", "[::1]"):
        assert client.send("/api/places", headers={"Host": f"{host}:{client.page.port}"}).status == 200


@pytest.mark.parametrize(
    ("name", "host", "ours"),
    [
        ("127.0.0.1:80", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("10.0.0.7:80", "10.0.0.7", True),
        ("10.0.0.8:80", "10.0.0.7", False),
        ("10.0.0.8:80", "0.0.0.0", True),
        ("[fe80::1]:80", "::", True),
        ("evil.example:80", "0.0.0.0", False),
        ("evil.example", "127.0.0.1", False),
        ("127.0.0.1.evil.example:80", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_the_names_of_a_server(name, host, ours):
    assert bound_to(name, host, 80) == ours


def test_what_another_site_sends_is_refused(client):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ):
        assert client.send("/api/tables", method="POST", headers=headers, body=b"a,b\n1,2\n").status == 403, headers
    for address in ADDRESSES[1:]:
        assert client.send(address, headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    opened = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}  # a link in a mail, with the token
    assert client.send(f"/?token={client.token}", token=None, headers=opened).status == 200
    assert client.send("/", headers=opened).status == 403


def test_every_answer_carries_the_policy(client):
    for address, status in (("/", 200), ("/api/places", 200), ("/nothing", 404), ("/api/runs", 404)):
        sent = client.send(address)
        assert sent.status == status
        policy = sent.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert sent.headers["x-content-type-options"] == "nosniff"
        assert sent.headers["referrer-policy"] == "no-referrer"
        assert "server" not in sent.headers
    report = client.send("/report", place="survey")
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in report.headers["content-security-policy"]


LEAVING = [
    *(
        "..",
        "../outside",
        "survey/../../outside",
        "/etc",
        "linked",
        "file-linked",
        "runs/../../outside",
        "\\..\\outside",
    ),
    *(
        "%2e%2e/outside",
        "..%2foutside",
        "....//outside",
        "~",
        "survey/.",
        "\0",
        "survey\0",
        "a" * 900,
        "//etc",
        "./../outside",
    ),
]


@each("place", LEAVING)
def test_a_path_that_leaves_the_folder_is_refused(client, place, caplog):
    with caplog.at_level(logging.WARNING):
        for address in ("/report", "/api/runs"):
            sent = client.send(address, place=place)
            assert SECRET.encode() not in sent.body
            if place != "survey/.":
                assert sent.status in (400, 404), (address, place, sent.body)
    if place in ("..", "../outside", "/etc", "linked", "file-linked"):
        assert "leaves the folder that is served" in caplog.text


def test_paths_in_the_address_itself_lead_nowhere(client, caplog):
    for path in (
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/report/../../x",
        "/page.css/..",
        "//evil.example/",
        "/.git/config",
    ):
        with caplog.at_level(logging.WARNING):
            sent = client.send(path)
        assert sent.status == 404, path
        assert "error" in sent.json
        assert ("would leave the folder" in caplog.text) == (".." in path or "%2e" in path), path
        caplog.clear()


def test_the_links_that_leave_are_not_listed(client):
    assert {place["path"] for place in client.send("/api/places").json["places"]} == {"runs", "survey", "older"}


@each("method", ("PUT", "PATCH", "OPTIONS", "TRACE", "FOO"))
def test_other_methods_are_not_answered(client, method):
    assert client.send("/api/places", method=method).status in (400, 405)


def test_what_is_too_large_is_refused_before_it_is_read(client):
    sent = client.send("/api/tables", method="POST", headers={"Content-Length": str(LARGEST + 1)}, name="a.csv")
    assert sent.status == 413
    assert "20 MB" in sent.json["error"]
    for length in ("-1", "1e9", "9" * 30):
        with contextlib.suppress(Exception):
            assert client.send("/api/tables", method="POST", headers={"Content-Length": length}).status >= 400
    assert client.send("/?" + "a" * 20_000).status in (400, 414)
    assert client.send("/api/places").status == 200


def test_a_body_that_lies_about_its_length_is_cut(client):
    """Chunks, without a length that was said before."""
    with socket.create_connection(("127.0.0.1", client.page.port), timeout=20) as connection:
        head = f"POST /api/tables?name=a.csv HTTP/1.1\r\nHost: {client.host}\r\nCookie: theodolite-{client.page.port}="
        connection.sendall(f"{head}{client.token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        chunk = b"100000\r\n" + b"a" * 0x100000 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(22):
                connection.sendall(chunk)
        connection.settimeout(10)
        assert b" 413 " in connection.recv(200)


def test_a_port_that_is_taken_and_other_places_that_cannot_be_served(page, tmp_path):
    with pytest.raises(BadInput, match=rf"port {page.port} is taken by another program"):
        serve(tmp_path, port=page.port, wait=False)
    for options, words in (
        ({"port": -1}, "no port -1"),
        ({"port": 70000}, "no port 70000"),
        ({"host": "no.such.host.invalid", "port": 0}, "no address"),
        ({"host": "203.0.113.9", "port": 0}, "cannot be listened on"),
    ):
        with pytest.raises(BadInput, match=words):
            serve(tmp_path, wait=False, **options)
    for place in (tmp_path / "none", __file__, "\0"):
        with pytest.raises(BadInput, match="folder"):
            serve(place, port=0, wait=False)


def test_two_servers_on_one_folder_do_not_know_each_other(page, client, folder):
    with serve(folder, port=0, wait=False) as other:
        second = Client(other)
        assert (
            second.send("/api/runs", place="runs").json["members"]
            == client.send("/api/runs", place="runs").json["members"]
        )
        assert second.send("/api/places", token=client.token).status == 403
    with pytest.raises(OSError, match="refused"):
        second.send("/")
    assert client.send("/").status == 200


def test_serving_changes_nothing_in_the_folder(client, folder):
    seen = lambda: {p: p.lstat().st_mtime_ns for p in folder.rglob("*")}
    before = seen()
    for address in ADDRESSES:
        client.send(address)
    lines = client.send("/api/runs", place="runs").json["ids"]
    client.send("/api/compare", place="runs", first=lines[0], second=lines[1])
    assert seen() == before


def test_a_fault_of_ours_is_a_sentence_and_its_traceback_is_in_the_log(client, monkeypatch, caplog):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of the inside")

    monkeypatch.setattr("theodolite.serving.folder.Folder.places", broken)
    sent = client.send("/api/places")
    assert sent.status == 500
    assert "secret" not in sent.json["error"]
    assert "ZeroDivisionError" in caplog.text


def test_a_server_with_too_much_to_do_says_so_but_answers_what_a_browser_asks_for_only_once(client, monkeypatch):
    monkeypatch.setattr("theodolite.serving.guard._AT_ONCE", 0)
    sent = client.send("/api/places")
    assert (sent.status, sent.headers["retry-after"]) == (503, "1")
    assert "again in a moment" in sent.json["error"]
    for address in NEVER_BUSY:
        query = {"place": "survey"} if address == "/report" else {}
        assert client.send(address, **query).status == 200, address


@pytest.mark.parametrize("error", [TimeoutError(), MemoryError()])
def test_what_would_fail_again_is_not_asked_again(error):
    assert explained(error)[0] not in (500, 503)


def test_connections_that_nobody_waits_at_make_room_for_others(client, monkeypatch):
    monkeypatch.setattr("theodolite.serving.listening._CONNECTIONS", 3)
    kept = []
    for _ in range(8):
        connection = http.client.HTTPConnection("127.0.0.1", client.page.port, timeout=10)
        connection.request("GET", "/api/places", headers={"Cookie": f"theodolite-{client.page.port}={client.token}"})
        kept.append((connection, connection.getresponse()))
    assert [response.status for _, response in kept] == [200] * 8
    assert all(response.read() for _, response in kept)
    closed = [connection.sock.recv(1) == b"" for connection, _ in kept if _readable(connection.sock)]
    assert closed.count(True) >= 4
    for connection, _ in kept:
        connection.close()


def _readable(connection: socket.socket) -> bool:
    return bool(select.select([connection], [], [], 0.5)[0])


def test_slow_clients_do_not_keep_others_waiting(client):
    slow = []
    for _ in range(40):
        connection = socket.create_connection(("127.0.0.1", client.page.port), timeout=5)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        slow.append(connection)
    assert client.send("/api/places").status == 200
    for connection in slow:
        connection.close()


@given(st.binary(max_size=300))
def test_whatever_is_sent_the_server_goes_on(client, noise):
    address = ("127.0.0.1", client.page.port)
    with contextlib.suppress(OSError), socket.create_connection(address, timeout=5) as connection:
        connection.sendall(noise + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert b" 500 " not in connection.recv(100)
    assert client.send("/page.css").status == 200

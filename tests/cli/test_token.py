from __future__ import annotations

import http.client
import json

import pytest

from tests.faces import Served

Capture = pytest.CaptureFixture[str]


def status_of(served: Served, secret: str, path: str = "/v1/generations") -> int:
    assert served.server.address is not None
    connection = http.client.HTTPConnection(*served.server.address, timeout=10)
    connection.request("GET", path, headers={"Authorization": f"Bearer {secret}"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_a_token_from_its_making_to_its_end(served: Served, capsys: Capture) -> None:
    assert served.schedctl("token", "create", "grafana", "--role", "read") == 0
    said = capsys.readouterr()
    secret = said.out.strip()
    assert secret.startswith("sched_")
    assert "grafana: role read, until it is revoked; keep it now" in said.err
    assert status_of(served, secret) == 200
    assert served.schedctl("token", "list") == 0
    said = capsys.readouterr()
    assert "grafana" in said.out
    assert secret not in said.out + said.err
    assert served.schedctl("token", "revoke", "grafana") == 0
    assert "grafana: revoked" in capsys.readouterr().out
    assert status_of(served, secret) == 401
    assert served.schedctl("token", "list") == 0
    assert "nobody holds a token" in capsys.readouterr().err
    assert served.schedctl("token", "list", "--all") == 0
    assert "revoked" in capsys.readouterr().out


def test_only_the_token_for_scripts(served: Served, capsys: Capture) -> None:
    assert served.schedctl("token", "create", "nas", "--role", "ping", "--lifetime", "90d", "-o", "name") == 0
    said = capsys.readouterr()
    assert (said.out[:6], said.err) == ("sched_", "")
    assert served.schedctl("token", "list", "-o", "json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["expires_at"]) == ("nas", "2026-05-31T08:00:00Z")


def test_what_is_wrong_is_told(served: Served, capsys: Capture) -> None:
    assert served.schedctl("token", "revoke", "nobody") == 4
    assert "schedctl token list" in capsys.readouterr().err
    assert served.schedctl("token", "create", "a") == 2
    assert served.schedctl("token", "create", "a", "--role", "read", "--lifetime", "5") == 1
    assert served.schedctl("token", "create", "a", "--role", "read") == 0
    assert served.schedctl("token", "create", "a", "--role", "read") == 5


def test_a_link_signs_in(served: Served, capsys: Capture) -> None:
    assert served.schedctl("token", "link") == 0
    url = capsys.readouterr().out.strip()
    assert "/signin?code=" in url
    connection = http.client.HTTPConnection("127.0.0.1", served.server.address[1], timeout=10)  # type: ignore[index]
    connection.request("GET", url[url.index("/signin") :])
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert (answer.status, "HttpOnly" in answer.getheader("set-cookie", "")) == (200, True)

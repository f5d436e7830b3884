from __future__ import annotations

import pytest

from scheduler.core.masking import Masks


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        (["hunter2!"], "a hunter2! b", "a *** b"),
        (["hunter2!"], "hunter2!hunter2!", "******"),
        (["abcdef", "defghi"], "-abcdefghi-", "-***-"),
        (["abcd", "abcdefgh"], "abcdefgh", "***"),
        (["abc"], "abc is too short to hide", "abc is too short to hide"),
        (['with"quote'], r'{"k": "with\"quote"}', '{"k": "***"}'),
        (["p@ss/word"], "https://u:p%40ss%2Fword@host", "https://u:***@host"),
        (["schlüssel"], "schlüssel und schl\\u00fcssel", "*** und ***"),
        (["  padded  "], "padded", "***"),
        (["-----BEGIN-----\nabcdefghijkl\nxyz\n"], "line abcdefghijkl xyz", "line *** xyz"),
        ([], "nothing to hide", "nothing to hide"),
    ],
)
def test_hidden_in_text(secrets: list[str], text: str, shown: str) -> None:
    assert Masks(secrets).text(text) == shown


def test_hidden_in_values_keys_included() -> None:
    value = {"tok-12345": ["tok-12345", 1, None, {"a": "x tok-12345"}]}
    assert Masks(["tok-12345"]).value(value) == {"***": ["***", 1, None, {"a": "x ***"}]}


def test_bytes_of_the_environment_that_are_no_text() -> None:
    assert Masks([b"caf\xe9-secret".decode("utf-8", "surrogateescape")]).hide(b"x caf\xe9-secret") == b"x ***"


@pytest.mark.parametrize(
    ("data", "size"), [(b"log: se", 2), (b"log: secret-valu", 11), (b"log", 0), (b"secret-value", 0)]
)
def test_the_beginning_of_a_secret_is_noticed(data: bytes, size: int) -> None:
    assert Masks(["secret-value"]).begun(data) == size

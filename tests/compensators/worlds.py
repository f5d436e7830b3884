"""Our compensators over the hostile provider, each in the form of list that it is for."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

import compensators.common.client as client_module
from compensators import registry
from scheduler.core.compensator import Compensator
from scheduler.testing import dialects
from scheduler.testing.compensators import World
from scheduler.testing.facts import Fact, Facts
from scheduler.testing.faults import CALM, Faults, Luck
from scheduler.testing.provider import KEY, Provider

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
COUNT = 120
PLAIN = {"id": "event_id", "type": "event", "occurred_at": "occurred_at", "subject": "order_no"}
SHOPIFY = {"id": dialects.SHOPIFY_ID, "type": "", "occurred_at": "updated_at", "subject": ""}

Options = Callable[[str], dict[str, Any]]
Execute = Callable[[str, Sequence[Any]], None]


def http(**more: Any) -> Options:
    return lambda url: {
        "url": f"{url}/events",
        "items": "data",
        "bearer": KEY,
        "size": 25,
        "from_param": "from",
        "until_param": "until",
        **more,
    }


FORMS: Mapping[str, tuple[str, str, Mapping[str, str], Options]] = {
    "cursor": ("http_list", "plain", PLAIN, http(cursor="next", order="newest_first")),
    "cursor, oldest first": (
        "http_list",
        "plain",
        PLAIN,
        http(cursor="next", order="oldest_first", params={"order": "oldest_first"}),
    ),
    "link": ("http_list", "plain", PLAIN, http(paging="link", times="seconds")),
    "page": ("http_list", "plain", PLAIN, http(paging="page")),
    "offset": ("http_list", "plain", PLAIN, http(paging="offset", times="milliseconds", until_param="")),
    "offset, short pages": ("http_list", "plain", PLAIN, http(paging="offset", size=100)),
    "posted": (
        "http_list",
        "plain",
        PLAIN,
        http(method="POST", cursor="next", from_param="query.filter.from", until_param="query.filter.until"),
    ),
    "no filter": (
        "http_list",
        "plain",
        PLAIN,
        http(cursor="next", order="newest_first", from_param="", until_param=""),
    ),
    "delta": (
        "http_list",
        "plain",
        PLAIN,
        lambda url: {"url": f"{url}/delta", "items": "value", "bearer": KEY, "cursor": "nextLink", "size": 25},
    ),
    "stripe": ("stripe_events", "stripe", {}, lambda url: {"api_key": KEY, "base_url": url}),
    "github": (
        "github_deliveries",
        "github",
        {},
        lambda url: {"token": KEY, "hook": dialects.HOOK, "repository": "example/repository", "base_url": url},
    ),
    "shopify": (
        "shopify_updated",
        "shopify",
        SHOPIFY,
        lambda url: {"token": KEY, "shop": "example.myshopify.com", "base_url": url},
    ),
}


class ProviderWorld(World):
    def __init__(self, provider: Provider, form: str) -> None:
        self.provider = provider
        self.kind, self.dialect, self.event, self.options = FORMS[form]
        self.form = form

    def compensator(self) -> Compensator:
        return registry.build(self.kind, self.options(self.provider.url), self.event)

    def events(self) -> Mapping[str, datetime]:
        return {self.id_of(one): one.at for one in self.provider.facts.all()}

    def id_of(self, fact: Fact) -> str:
        body = dialects.shopify(fact)
        return f"{body['admin_graphql_api_id']}@{body['updated_at']}" if self.dialect == "shopify" else fact.id

    def secrets(self) -> Iterable[str]:
        return (KEY,)

    def webhook(self, event: str) -> Any:
        fact = next(one for one in self.provider.facts.all() if self.id_of(one) == event)
        return dialects.DIALECTS[self.dialect].body(fact)

    def go_away(self) -> None:
        self.provider.lists.away = True

    def refuse(self) -> None:
        self.provider.lists.key = "another"

    def throttle(self) -> None:
        self.provider.use(Faults(throttle=1.0))

    def forget_cursors(self) -> None:
        if self.form.startswith(("page", "offset")):
            super().forget_cursors()
        self.provider.lists.forget_cursors()

    def poison(self) -> None:
        if self.form in ("github", "delta"):
            super().poison()
        self.provider.use(dataclasses.replace(self.provider.faults, poison=1.0))

    def distrust(self) -> None:
        if self.form == "github":
            self.provider.lists.hook_active = False
        elif self.form == "shopify":
            self.provider.lists.scopes = ("read_products",)
        else:
            super().distrust()


def provider_of(form: str, faults: Faults = CALM, *, now: datetime = NOON) -> Provider:
    """With six hours of events until an hour ago; its clock stands still."""
    made = Provider(faults, dialect=FORMS[form][1], clock=lambda: now)
    made.lists.most = 25
    made.facts.spread(COUNT, now - timedelta(hours=7), now - timedelta(hours=1))
    return made


class RowsWorld(World):
    """Rows of one's own database that wait. `execute` runs a statement there, with its values; `time` is the type of a
    column that holds instants in UTC."""

    def __init__(self, database: str, execute: Execute, time: str) -> None:
        self.database = database
        self.execute = execute
        self.facts = Facts(CALM, Luck(1), lambda: NOON)
        self.facts.spread(60, NOON - timedelta(hours=7), NOON - timedelta(hours=1))
        execute(f"CREATE TABLE waiting (id TEXT, created {time}, number INTEGER, hook TEXT)", ())
        for one in self.facts.all():
            values = (one.id, one.at.strftime("%Y-%m-%d %H:%M:%S"), one.number, json.dumps(dialects.plain(one)))
            execute("INSERT INTO waiting VALUES (?, ?, ?, ?)", values)
        self.query = (
            "SELECT id, created AS occurred_at, 'payment' AS type, hook AS body FROM waiting "
            "WHERE created BETWEEN :start AND :end ORDER BY created, id"
        )

    def compensator(self) -> Compensator:
        return registry.build("sql_query", {"database": self.database, "query": self.query, "size": 7}, {})

    def events(self) -> Mapping[str, datetime]:
        return {one.id: one.at for one in self.facts.all()}

    def webhook(self, event: str) -> Any:
        fact = self.facts.known(event)
        assert fact is not None
        return dialects.plain(fact)

    def secrets(self) -> Iterable[str]:
        return (self.database,)

    def go_away(self) -> None:
        scheme = self.database.partition(":")[0]
        self.database = f"{scheme}:///nowhere/at-all.db" if scheme == "sqlite" else "postgresql://127.0.0.1:1/x"

    def poison(self) -> None:
        self.execute("INSERT INTO waiting SELECT NULL, created, 0, '{}' FROM waiting WHERE number = 30", ())
        self.execute("INSERT INTO waiting SELECT 'x', created, 0, 'no JSON' FROM waiting WHERE number = 31", ())


def sqlite_executes(path: Path) -> Execute:
    def execute(statement: str, values: Sequence[Any]) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement, values)

    return execute


def postgres_executes(url: str) -> Execute:
    def execute(statement: str, values: Sequence[Any]) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET timezone = 'UTC'")
            connection.execute(statement.replace("?", "%s").encode(), values or None)

    return execute


def live_in_shanghai(url: str) -> None:
    """New sessions of this PostgreSQL database begin with that zone."""
    with psycopg.connect(url, autocommit=True) as connection:
        name = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET timezone = 'Asia/Shanghai'").format(name))


def quick(monkeypatch: Any) -> list[float]:
    """Waits of clients take no time; what they were."""
    waits: list[float] = []
    make = client_module.Client.__init__

    def init(self: Any, *arguments: Any, **more: Any) -> None:
        make(self, *arguments, **{**more, "sleep": waits.append})

    monkeypatch.setattr(client_module.Client, "__init__", init)
    return waits

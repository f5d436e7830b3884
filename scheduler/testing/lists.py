"""The five ways in which providers let one ask what happened, as answers to HTTP requests.

events        /v1/events (Stripe's form)  /events (by cursor, page, offset, Link header)
deliveries    /repos/OWNER/NAME/hooks/1/deliveries and each with its payload (GitHub's form)
resources     /admin/api/VERSION/orders.json by updated_at (Shopify's form)
changes       /delta?token=… (an opaque token, and one for the next time)
objects       /objects/NUMBER: the state of one
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import format_datetime
from urllib.parse import urlencode

from scheduler.core.model import Json
from scheduler.core.sender_time import sender_instant
from scheduler.testing import dialects
from scheduler.testing.facts import Fact, Facts
from scheduler.testing.faults import Faults, Luck

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` 0: the connection is closed without an answer."""

    status: int
    document: Json = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Lists:
    """`calls` counts what was asked, `throttled` what was answered 429. `away`: nothing is answered but 503. `key`:
    what every request has to bring (as Bearer, or in X-Shopify-Access-Token). A page has `most` items at most."""

    facts: Facts
    faults: Faults
    luck: Luck
    key: str
    most: int = 250
    hook_active: bool = True
    scopes: tuple[str, ...] = ("read_orders", "read_all_orders")
    away: bool = False
    calls: int = 0
    throttled: int = 0
    epoch: int = 0
    log: list[str] = field(default_factory=list)
    _ends: set[str] = field(default_factory=set)
    _gone: set[str] = field(default_factory=set)

    def forget_cursors(self) -> None:
        """Those that were handed out until now are not known any more."""
        self.epoch += 1
        self._gone |= self._ends

    def answer(self, path: str, query: Query, headers: Mapping[str, str]) -> Reply:
        """`headers` with names in lower case."""
        self.calls += 1
        call = self.calls
        self.log.append(f"{path}?{urlencode(query)}")
        date = {"Date": format_datetime(self.facts.now(), usegmt=True)}
        trouble = self._trouble(call, query, headers)
        reply = trouble or self._route(path, query, call)
        return Reply(reply.status, reply.document, {**date, **reply.headers})

    def _trouble(self, call: int, query: Query, headers: Mapping[str, str]) -> Reply | None:
        if self.away or self.luck.strikes(self.faults.outage, "outage", call):
            return Reply(503 if self.away or call % 2 else 0, {"error": "away"})
        if self.luck.strikes(self.faults.throttle, "throttle", call):
            self.throttled += 1
            return Reply(429, {"error": "slower"}, {"Retry-After": self.faults.retry_after})
        given = headers.get("authorization", "").removeprefix("Bearer "), headers.get("x-shopify-access-token")
        if self.key not in given:
            return Reply(401, {"error": "no such key"})
        goes_on = {"cursor", "starting_after", "page_info", "token"} & set(query)
        if goes_on and self.luck.strikes(self.faults.expire, "expire", call):
            return Reply(400, {"error": "no such cursor"})
        return None

    def _route(self, path: str, query: Query, call: int) -> Reply:
        if path == "/v1/events":
            return self._stripe(query, call)
        if path == "/events":
            return self._events(query, call)
        if path == "/delta":
            return self._delta(query)
        if match := re.fullmatch(r"/repos/[^/]+/[^/]+/hooks/1(/deliveries(?:/(\d+))?)?", path):
            return self._github(path, query, match[1], match[2])
        if path == "/admin/oauth/access_scopes.json":
            return Reply(200, {"access_scopes": [{"handle": one} for one in self.scopes]})
        if re.fullmatch(r"/admin/api/[^/]+/orders\.json", path):
            return self._shopify(path, query, call)
        if match := re.fullmatch(r"/objects/(\d+)", path):
            fact = self.facts.numbered(int(match[1]))
            return Reply(404, {"error": "none"}) if fact is None else Reply(200, dialects.plain(fact))
        return Reply(404, {"error": "no such address"})

    def _stripe(self, query: Query, call: int) -> Reply:
        """Newest first, after the event of this id."""
        low, high = int(query.get("created[gte]", 0)), int(query.get("created[lte]", 1 << 40))
        rows = [one for one in self._newest() if low <= int(one.at.timestamp()) <= high]
        after = query.get("starting_after")
        if after is not None:
            known = self.facts.known(after)
            if known is None or after in self._gone or self._forgotten(known):
                return Reply(404, {"error": {"code": "resource_missing"}})
            rows = [one for one in rows if one < known]
        size = self._size(query)
        page = [dialects.stripe(one) for one in rows[:size]]
        if page:
            self._ends.add(page[-1]["id"])
            self._gone.discard(page[-1]["id"])
        return Reply(200, {"object": "list", "data": self._poisoned(page, call), "has_more": len(rows) > size})

    def _events(self, query: Query, call: int) -> Reply:
        rows = _between(self._newest(), query.get("from"), query.get("until"))
        if query.get("order") == "oldest_first":
            rows.reverse()
        size = self._size(query)
        if "page" in query or "offset" in query:
            at = int(query["offset"]) if "offset" in query else (int(query["page"]) - 1) * size
            return Reply(200, {"data": self._placed(self._moved(rows, call))[at : at + size]})
        rest = self._after(rows, query.get("cursor"), falling=query.get("order") != "oldest_first")
        if rest is None:
            return Reply(410, {"error": "cursor expired"})
        page = rest[:size]
        following = self._cursor(page[-1]) if len(rest) > size else None
        document = {"data": self._poisoned([dialects.plain(one) for one in page], call), "next": following}
        return Reply(200, document, _link("/events", query, "cursor", following))

    def _github(self, path: str, query: Query, deliveries: str | None, number: str | None) -> Reply:
        if deliveries is None:
            return Reply(200, {"id": dialects.HOOK, "active": self.hook_active})
        if number is not None:
            fact = self.facts.numbered(int(number))
            if fact is None:
                return Reply(404, {"message": "Not Found"})
            request = {"headers": dialects.github_headers(fact), "payload": dialects.github(fact)}
            return Reply(200, {**_delivery(fact), "request": request})
        rest = self._after(self._newest(), query.get("cursor"), falling=True)
        if rest is None:
            return Reply(422, {"message": "Invalid cursor"})
        size = self._size(query, "per_page")
        page = rest[:size]
        following = self._cursor(page[-1]) if len(rest) > size else None
        return Reply(200, [_delivery(one) for one in page], _link(path, query, "cursor", following))

    def _shopify(self, path: str, query: Query, call: int) -> Reply:
        """The cursor carries the query, as there."""
        asked = dict(query)
        token = asked.pop("page_info", None)
        if token is not None:
            inner = _opened(token)
            if inner is None or inner["epoch"] != self.epoch:
                return Reply(400, {"errors": {"page_info": "Invalid value."}})
            asked = {**inner["query"], "limit": query.get("limit", "50"), "cursor": inner["cursor"]}
        rows = _between(self._newest(), asked.get("updated_at_min"), asked.get("updated_at_max"))
        rows.reverse()
        rest = self._after(rows, asked.get("cursor"), falling=False) or []
        size = self._size(asked)
        page = rest[:size]
        following = None
        if len(rest) > size:
            query_ = {name: value for name, value in asked.items() if name not in ("cursor", "limit")}
            following = _closed({"epoch": self.epoch, "query": query_, "cursor": self._cursor(page[-1])})
        orders = self._poisoned([dialects.shopify(one) for one in page], call)
        return Reply(200, {"orders": orders}, _link(path, {"limit": str(size)}, "page_info", following))

    def _delta(self, query: Query) -> Reply:
        rows = [*self.facts.visible()]
        rest = self._after(rows, query.get("token"), falling=False)
        if rest is None:
            return Reply(410, {"error": "resync required"})
        page = rest[: self._size(query)]
        last = page[-1] if page else rows[-1] if rows else None
        token = query.get("token", "") if last is None else self._cursor(last)
        name = "nextLink" if len(rest) > len(page) else "deltaLink"
        return Reply(200, {"value": [dialects.plain(one) for one in page], name: f"/delta?token={token}"})

    def _size(self, query: Query, name: str = "limit") -> int:
        return max(1, min(self.most, int(query.get(name, "50"))))

    def _forgotten(self, fact: Fact) -> bool:
        """The list does not reach back to it any more."""
        keeps = self.faults.keeps
        return keeps is not None and fact.at < self.facts.now() - keeps

    def _newest(self) -> list[Fact]:
        return list(self.facts.visible())[::-1]

    def _moved(self, rows: list[Fact], call: int) -> list[Fact]:
        """With something in front that was not there before, or is not there any more."""
        return [*rows[:1], *rows] if self.luck.strikes(self.faults.drift, "drift", call) else rows

    def _placed(self, rows: list[Fact]) -> list[Json]:
        """What is no event has a place of its own, the same at each call: pages are pieces of one list."""
        placed: list[Json] = []
        for one in rows:
            placed.append(dialects.plain(one))
            if self.luck.strikes(self.faults.poison, "poison", one.id):
                placed.append({"poison": one.number})
        return placed

    def _poisoned(self, page: list[Json], call: int) -> list[Json]:
        if page and self.luck.strikes(self.faults.poison, "poison", call):
            return [*page, {"poison": call}]
        return page

    def _cursor(self, fact: Fact) -> str:
        return _closed({"epoch": self.epoch, "number": fact.number})

    def _after(self, rows: list[Fact], cursor: str | None, *, falling: bool) -> list[Fact] | None:
        """What follows in the list; None for a cursor that is not known."""
        if cursor is None:
            return rows
        inner = _opened(cursor)
        if inner is None or inner["epoch"] != self.epoch:
            return None
        known = self.facts.numbered(inner["number"])
        if known is None:
            return None
        return [one for one in rows if (one < known if falling else one > known)]


def _between(rows: Sequence[Fact], low: str | None, high: str | None) -> list[Fact]:
    """Exclusive at both ends, as many lists are without saying so."""
    first, last = sender_instant(low), sender_instant(high)
    return [one for one in rows if (first is None or one.at > first) and (last is None or one.at < last)]


def _delivery(fact: Fact) -> Json:
    return {
        "id": fact.number,
        "guid": fact.id,
        "delivered_at": dialects.text(fact.at),
        "redelivery": False,
        "status": "OK",
        "status_code": 202,
        "event": "issues",
        "action": "created",
    }


def _link(path: str, query: Query, name: str, cursor: str | None) -> Mapping[str, str]:
    if cursor is None:
        return {}
    return {"Link": f'<{path}?{urlencode({**query, name: cursor})}>; rel="next"'}


def _closed(value: Json) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


def _opened(token: str) -> Json:
    try:
        return json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, binascii.Error):
        return None

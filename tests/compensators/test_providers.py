"""What is peculiar to one way of listing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compensators import registry
from scheduler.core.compensator import (
    Compensator,
    ListedEvent,
    ListingFailed,
    Undecodable,
    Window,
    answering,
)
from scheduler.core.errors import InvalidInput
from scheduler.testing.faults import CALM
from scheduler.testing.provider import KEY
from tests.compensators.worlds import NOON, PLAIN, SHOPIFY, ProviderWorld, http, provider_of, quick
from tests.executors.server import Answers, Server, as_json, reply

DAY = Window(NOON - timedelta(days=1), NOON)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def listed(made: Compensator, window: Window = DAY) -> list[ListedEvent | Undecodable]:
    return [one for page in made.pages(window, None) for one in page.items]


def ids(made: Compensator, window: Window = DAY) -> list[str]:
    return [one.id for one in listed(made, window) if isinstance(one, ListedEvent)]


# ---------------------------------------------------------------- github


def github(server: Server) -> Compensator:
    options = {"token": "t", "hook": 7, "repository": "o/r", "base_url": server.url}
    return registry.build("github_deliveries", options, {})


def delivery(number: int, guid: str, at: str, **more: object) -> dict[str, object]:
    return {"id": number, "guid": guid, "delivered_at": at, "event": "push", "status": "OK", **more}


def github_answers(server: Server, *deliveries: dict[str, object]) -> None:
    server.answers["/repos/o/r/hooks/7/deliveries"] = Answers(200, as_json(deliveries))
    for one in deliveries:
        request = {"headers": {"X-GitHub-Delivery": one["guid"]}, "payload": {"n": one["id"]}}
        server.answers[f"/repos/o/r/hooks/7/deliveries/{one['id']}"] = Answers(200, as_json({"request": request}))


def test_a_redelivery_is_no_further_event_and_its_payload_is_not_fetched(server: Server) -> None:
    redelivery = delivery(3, "g1", "2026-03-01T10:00:00Z", redelivery=True, status="failed to connect")
    github_answers(server, redelivery, delivery(1, "g1", "2026-03-01T09:00:00Z"))
    [event] = listed(github(server))
    assert event == ListedEvent(
        "g1", datetime(2026, 3, 1, 10, tzinfo=UTC), {"n": 3}, "push", "", {"x-github-delivery": "g1"}
    )
    assert len(server.asked) == 2


def test_of_what_came_already_no_payload_is_fetched(server: Server) -> None:
    deliveries = [delivery(number, f"g{number}", f"2026-03-01T0{number}:00:00Z") for number in (3, 2, 1)]
    github_answers(server, *deliveries)
    asked: list[set[str]] = []

    def known(ids: Collection[str]) -> Collection[str]:
        asked.append(set(ids))
        return {"g1", "g3", "of another page"}

    with answering(known):
        found = listed(github(server))
    assert asked == [{"g1", "g2", "g3"}]
    assert {one.id: one.body for one in found if isinstance(one, ListedEvent)} == {
        "g3": None,
        "g2": {"n": 2},
        "g1": None,
    }
    assert len(server.asked) == 2


def test_a_ping_is_no_event(server: Server) -> None:
    github_answers(server, delivery(1, "g1", "2026-03-01T09:00:00Z", event="ping"))
    assert listed(github(server)) == []


def test_only_payloads_of_the_window_are_fetched(server: Server) -> None:
    github_answers(server, delivery(2, "new", "2026-03-01T13:00:00Z"), delivery(1, "old", "2026-02-01T09:00:00Z"))
    assert listed(github(server)) == []
    assert len(server.asked) == 1


def test_a_payload_that_is_gone_holds_up_nothing(server: Server) -> None:
    github_answers(server, delivery(2, "g2", "2026-03-01T10:00:00Z"), delivery(1, "g1", "2026-03-01T09:00:00Z"))
    server.answers["/repos/o/r/hooks/7/deliveries/2"] = Answers(404, b"{}")
    gone, event = listed(github(server))
    assert isinstance(gone, Undecodable)
    assert "its payload is gone" in gone.why
    assert isinstance(event, ListedEvent)


def test_an_inactive_hook_proves_nothing(server: Server) -> None:
    server.answers["/repos/o/r/hooks/7"] = Answers(200, as_json({"active": False}))
    found = github(server).coverage()
    assert not found.complete
    assert "switch it on" in found.why


@pytest.mark.parametrize("options", [{}, {"repository": "a/b", "organization": "c"}, {"repository": "nothing"}])
def test_whose_hook(options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=r"with\.(repository|organization): "):
        registry.build("github_deliveries", {"token": "t", "hook": 1, **options}, {})


# ---------------------------------------------------------------- stripe, shopify


def test_stripe_is_asked_for_types_and_account(server: Server) -> None:
    server.answers["/v1/events"] = Answers(200, as_json({"data": [], "has_more": False}))
    options = {"api_key": "sk", "types": ["invoice.*", "charge.failed"], "account": "acct_1", "base_url": server.url}
    assert ids(registry.build("stripe_events", options, {})) == []
    [asked] = server.asked
    assert asked.headers["stripe-account"] == "acct_1"
    assert "types%5B%5D=invoice.%2A&types%5B%5D=charge.failed" in asked.path


def test_stripe_filters_by_twenty_types_at_most() -> None:
    with pytest.raises(InvalidInput, match=r"with.types: Stripe filters by 20 types at most, here are 21"):
        registry.build("stripe_events", {"api_key": "sk", "types": [f"t{n}" for n in range(21)]}, {})


def test_stripe_that_answers_something_else(server: Server) -> None:
    with pytest.raises(ListingFailed, match="no list of events"):
        ids(registry.build("stripe_events", {"api_key": "sk", "base_url": server.url}, {}))


def test_without_all_orders_the_list_is_complete_only_for_who_needs_no_older_ones() -> None:
    with provider_of("shopify") as provider:
        made = ProviderWorld(provider, "shopify").compensator()
        assert made.coverage().complete
        assert made.coverage().reaches_back is None
        provider.lists.scopes = ("write_orders",)
        limited = made.coverage()
        assert not limited.complete
        assert "created more than 60 days ago" in limited.why
        assert "read_all_orders" in limited.why
        assert "recent_only: true" in limited.why
        options = {"token": KEY, "shop": "s", "base_url": provider.url, "recent_only": True}
        recent = registry.build("shopify_updated", options, SHOPIFY)
        assert recent.coverage().complete
        assert recent.coverage().reaches_back == timedelta(days=60)
        provider.lists.scopes = ("read_orders", "read_all_orders")
        assert recent.coverage().reaches_back is None


def test_only_of_orders_a_token_may_read_a_part() -> None:
    with provider_of("shopify") as provider:
        provider.lists.scopes = ("read_products",)
        options = {"token": KEY, "shop": "s", "base_url": provider.url, "resource": "products"}
        found = registry.build("shopify_updated", options, SHOPIFY).coverage()
        assert (found.complete, found.reaches_back) == (True, None)


def test_a_change_of_a_shop_needs_an_id_that_both_sides_have() -> None:
    with pytest.raises(InvalidInput, match=r"with.id: the source reads it from a header"):
        registry.build("shopify_updated", {"token": "t", "shop": "s"}, {"id": "header:X-Shopify-Event-Id"})


# ---------------------------------------------------------------- http_list


def of(server: Server, **more: Any) -> Compensator:
    return registry.build("http_list", {"url": f"{server.url}/events", "cursor": "next", **more}, PLAIN)


def event(id_: str, at: object = "2026-03-01T09:00:00Z", **more: object) -> dict[str, object]:
    return {"event_id": id_, "occurred_at": at, **more}


@pytest.mark.parametrize("document", [{}, {"data": None}, {"data": {"a": 1}}, {"error": "no"}])
def test_an_answer_without_a_list_is_no_empty_list(server: Server, document: object) -> None:
    server.answers["/events"] = Answers(200, as_json(document))
    with pytest.raises(ListingFailed, match=r"there is no list at data in its answer; correct items:"):
        listed(of(server, items="data"))
    with pytest.raises(ListingFailed):
        of(server, items="data").coverage()


def test_a_list_that_may_be_left_out_can_be_described(server: Server) -> None:
    assert listed(of(server, items="data || `[]`")) == []


def test_a_cursor_that_stays_where_it_is(server: Server) -> None:
    server.answers["/events"] = Answers(200, as_json({"data": [event("a")], "next": "x"}))
    with pytest.raises(ListingFailed, match="again and again"):
        listed(of(server, items="data"))


@pytest.mark.parametrize(
    ("following", "options", "found"),
    [
        ("/9j/4A==", {"cursor_param": "after"}, ["first", "by parameter"]),
        ("/9j/4A==", {}, ["first", "by address"]),
        ("{url}/9j/4A==", {"cursor_param": "after"}, ["first", "by address"]),
        ("{url}/9j/4A==", {}, ["first", "by address"]),
    ],
)
def test_whether_a_cursor_is_an_address(
    server: Server, following: str, options: dict[str, str], found: list[str]
) -> None:
    headers = {"Content-Type": "application/json", "Connection": "close"}

    def events(handler: Any) -> None:
        first = {"data": [event("first")], "next": following.format(url=server.url)}
        document = {"data": [event("by parameter")]} if "after=%2F9j%2F4A%3D%3D" in handler.path else first
        reply(handler, Answers(200, as_json(document), headers))

    server.handlers["/events"] = events
    server.answers["/9j/4A=="] = Answers(200, as_json({"data": [event("by address")]}))
    assert ids(of(server, items="data", **options)) == found


def test_a_last_page_that_names_a_cursor_all_the_same(server: Server) -> None:
    server.answers["/events"] = Answers(200, as_json({"data": [event("a")], "more": False}))
    assert ids(of(server, items="data", cursor="data[-1].event_id", more="more")) == ["a"]


def test_a_list_that_changes_for_ever_is_not_believed() -> None:
    with provider_of("page", CALM) as provider:
        provider.lists.most = 60
        made = ProviderWorld(provider, "page").compensator()
        pages = made.pages(Window(NOON - timedelta(days=1), NOON), None)

        found: list[Any] = []

        def read() -> None:
            for page in pages:
                found.append(page)
                provider.facts.add(NOON - timedelta(hours=5))

        with pytest.raises(ListingFailed, match="changed in each of 5 passes over it"):
            read()
        assert found[-1].next == {"at": 0, "offset": 0, "sum": "0", "before": "", "passes": 0}


@pytest.mark.parametrize("form", ["page", "offset", "offset, short pages"])
def test_a_place_that_does_not_say_how_many_items_lie_before_it(form: str) -> None:
    with provider_of(form) as provider:
        world = ProviderWorld(provider, form)
        former = {"at": 3, "sum": "0", "before": "", "passes": 0}
        pages = world.compensator().pages(DAY, former)
        assert {one.id for page in pages for one in page.items if isinstance(one, ListedEvent)} == world.events().keys()
        assert any(one in provider.lists.log[0] for one in ("page=1", "offset=0"))


def test_items_inside_of_items_with_times_in_milliseconds(server: Server) -> None:
    inner = event("a", 1772355600000, event="t", order_no=5)
    server.answers["/events"] = Answers(200, as_json([{"hook": inner}, {"hook": "text"}, 7, {"hook": {}}]))
    first, *rest = listed(of(server, body="hook"))
    assert first == ListedEvent("a", datetime(2026, 3, 1, 9, tzinfo=UTC), inner, "t", "5", {})
    assert [one.why for one in rest if isinstance(one, Undecodable)] == [
        "it is no object",
        "it is no object",
        "there is no event id at event_id",
    ]


def test_the_reading_ends_beyond_the_window() -> None:
    with provider_of("no filter") as provider:
        made = ProviderWorld(provider, "no filter").compensator()
        recent = Window(NOON - timedelta(hours=2), NOON)
        assert ids(made, recent)
        calls = provider.lists.calls
        assert ids(made)
        assert provider.lists.calls > 2 * calls


def test_how_a_window_is_asked_for(server: Server) -> None:
    server.answers["/events"] = Answers(200, b"[]")
    window = Window(NOON + timedelta(milliseconds=1), NOON + timedelta(seconds=10, milliseconds=1))
    bounds = {"from_param": "since", "until_param": "until", "size_param": ""}
    for times, low, high in (
        ("rfc3339", "2026-03-01T11%3A59%3A59Z", "2026-03-01T12%3A00%3A11Z"),
        ("seconds", "1772366399", "1772366411"),
        ("milliseconds", "1772366399000", "1772366411000"),
    ):
        listed(of(server, times=times, **bounds), window)
        assert server.asked[-1].path == f"/events?since={low}&until={high}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "ftp://x"}, "with.url: 'ftp://x' is no address"),
        ({"items": "data["}, "with.items: 'data[' is not JMESPath"),
        ({"id": "nope(x)"}, "with.id: 'nope.x.': there is no function nope"),
        ({"cursor": ""}, "with.cursor: nothing says where the next cursor lies; write cursor: …, or paging: none if"),
        ({"cursor": "", "more": "has_more"}, "with.cursor: nothing says where the next cursor lies"),
        ({"size": 0}, "with.size: a page has at least one item"),
        ({"paging": "pages"}, "with.paging: 'pages' is not known; write one of cursor page offset link none"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_asked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said.replace("[", r"\[")):
        registry.build("http_list", {"url": "https://x", "cursor": "next", **options}, PLAIN)


def test_a_list_of_one_page(server: Server) -> None:
    server.answers["/events"] = Answers(200, as_json([event("a")]))
    assert ids(of(server, paging="none", cursor="")) == ["a"]


def test_keys_by_password_and_header(server: Server) -> None:
    server.answers["/events"] = Answers(200, b"[]")
    listed(of(server, username="u", password="p", headers={"X-Key": "k"}))
    assert server.asked[0].headers["authorization"] == "Basic dTpw"
    assert server.asked[0].headers["x-key"] == "k"


def test_waits_of_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = quick(monkeypatch)
    with provider_of("cursor") as provider:
        made = registry.build("http_list", http(cursor="next", pace="90s")(provider.url), PLAIN)
        assert len(list(made.pages(DAY, None))) > 2
    assert all(80 < one <= 90 for one in waits[1:])
    assert KEY not in repr(made)

"""A ledger that moves: every row of every table, whatever is in it, between databases of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Date, Float, Integer, LargeBinary, Table, Text, insert, select, text, update

from scheduler.core.errors import Refused, StartError
from scheduler.core.model import Node
from scheduler.store import tables as t
from scheduler.store import transfer as transfer_module
from scheduler.store.dialects.base import Database
from scheduler.store.schema import OLDEST_RELEASE_KEY
from scheduler.store.store import SqlStore, open_database, open_store
from scheduler.store.transfer import LEASE, Begun, Transfer
from scheduler.store.types import Big, FreeText, JsonText, UtcInstant
from tests.databases import RELEASE, Place
from tests.store.world import T0

ROWS = 30
TABLES = [one for one in t.metadata.sorted_tables if one is not t.installation]
JSON = [None, {"a": [1, 1.5, None, "ü\u0000\ud83d\ude00"]}, [], "x" * 5000, 0, False]


@dataclass
class Sides:
    """Two places and their databases; `source` is full."""

    source_place: Place
    target_place: Place
    source: Database
    target: Database

    def transfer(self) -> Transfer:
        return Transfer(self.source, self.target)


@pytest.fixture(params=["sqlite to postgresql", "postgresql to sqlite", "sqlite to sqlite"])
def sides(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sides]:
    kinds = request.param.split(" to ")
    postgres = request.getfixturevalue("fresh_postgres_place") if "postgresql" in kinds else None
    places = []
    for number, kind in enumerate(kinds):
        place = Place(kind, "", tmp_path / f"side{number}") if kind == "sqlite" else postgres
        assert place is not None
        places.append(place)
    with closing(places[0].open()):
        pass  # the schema
    opened = [open_database(place.url, place.state_dir) for place in places]
    fill(opened[0])
    yield Sides(*places, *opened)
    for database in opened:
        database.close()


def fill(database: Database) -> None:
    """Rows in every table, also in those that come later."""
    with database.writing() as connection:
        for one in TABLES:
            connection.execute(insert(one), [{c.name: value(one, c, n) for c in one.columns} for n in range(ROWS)])
        connection.execute(insert(t.installation), {"key": "environment", "value": "production"})
        # JSON that another release wrote otherwise stays as it was written.
        for run, payload in (("runs-id-1", "null"), ("runs-id-2", '{"b":  1.0e2, "a": 0}')):
            connection.execute(text("UPDATE payloads SET payload = :it WHERE run = :run"), {"it": payload, "run": run})


def value(one: Table, c: Column[Any], n: int) -> Any:
    for key in c.foreign_keys:
        return value(key.column.table, key.column, n)
    if c.nullable and n % 3 == 0:
        return None
    kinds: list[tuple[type, Callable[[], Any]]] = [
        (JsonText, lambda: JSON[n % len(JSON)] if c.nullable else {"n": n}),
        (FreeText, lambda: f"{n} ü 漢\n\t'\"\\ {c.name}"),
        (UtcInstant, lambda: T0 + timedelta(days=n, microseconds=n)),
        (Boolean, lambda: n % 2 == 0),
        (Date, lambda: date(2026, 1, 1) + timedelta(days=n)),
        (Float, lambda: n + 0.1),
        (LargeBinary, lambda: bytes(range(256)) * n),
        # With gaps, and in another order than the texts.
        (Integer, lambda: 3 * (ROWS - n) if c.primary_key else (n if one.c[c.name].type is not Big else 2**40 + n)),
        (Text, lambda: f"{one.name}-{c.name}-{n}"),
    ]
    return next(make() for kind, make in kinds if isinstance(c.type, kind))


def content(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    with database.engine.connect() as connection, connection.begin():
        found = {one.name: sorted(map(tuple, connection.execute(select(one))), key=repr) for one in TABLES}
        texts = connection.execute(text("SELECT run, payload FROM payloads ORDER BY run"))
        return found | {"payloads as text": list(map(tuple, texts))}


def moved(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, list[tuple[Any, ...]]]:
    """As it arrives: a node that held runs without a lease has the time of one from now on."""
    lease = list(t.nodes.c.keys()).index("lease")
    nodes = [
        row if row[lease] is not None else (*row[:lease], LEASE.total_seconds(), *row[lease + 1 :])
        for row in rows["nodes"]
    ]
    return rows | {"nodes": sorted(nodes, key=repr)}


def silent(table: str, there: int, wanted: int) -> None:
    pass


def test_everything_arrives_as_it_was(sides: Sides) -> None:
    transfer = sides.transfer()
    assert transfer.begin(RELEASE) is Begun.NEW
    told: dict[str, tuple[int, int]] = {}
    assert transfer.copy(lambda name, there, wanted: told.update({name: (there, wanted)})) == ROWS * len(TABLES)
    assert told == {one.name: (ROWS, ROWS) for one in TABLES}
    assert transfer.compare() == []
    transfer.finish()
    assert content(sides.target) == moved(content(sides.source))
    with sides.target.reading() as connection:
        values = {row.key: row.value for row in connection.execute(select(t.installation))}
    assert values == {OLDEST_RELEASE_KEY: RELEASE, "environment": "production"}


def test_a_copy_that_was_interrupted_goes_on_and_nobody_uses_what_is_there(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer_module, "BATCH", 7)
    monkeypatch.setattr(transfer_module, "SMALL_BATCHES", {"runs": 4})
    turns = 0
    while True:
        turns += 1
        patience = [5]

        def stop(table: str, there: int, wanted: int, patience: list[int] = patience) -> None:
            patience[0] -= 1
            if not patience[0]:
                raise KeyboardInterrupt

        transfer = sides.transfer()
        assert transfer.begin(RELEASE) is (Begun.AGAIN if turns > 1 else Begun.NEW)
        try:
            transfer.copy(stop)
            break
        except KeyboardInterrupt:
            with pytest.raises(StartError, match="unfinished copy"):
                open_store(sides.target_place.url, sides.target_place.state_dir, release=RELEASE)
    assert turns > 5
    transfer.finish()
    assert content(sides.target) == moved(content(sides.source))
    sides.target_place.open().close()


def test_the_old_ledger_knows_that_it_was_moved(sides: Sides) -> None:
    transfer = sides.transfer()
    transfer.begin(RELEASE)
    transfer.copy(silent)
    transfer.finish()
    place = sides.source_place
    with pytest.raises(StartError, match="was moved to") as refused:
        place.open()
    assert sides.target.place() in refused.value.reason
    open_store(place.url, place.state_dir, release=RELEASE, after_restore=True).close()
    place.open().close()


def test_numbers_of_rows_that_are_gone_are_not_given_again(sides: Sides) -> None:
    with sides.source.writing() as connection:
        (last,) = connection.execute(text("SELECT max(seq) FROM runs")).one()
        for number in (last + 1, last + 2):
            # As the database numbers them, after rows that were numbered by hand.
            fresh = {c.name: value(t.runs, c, 1000 + number) for c in t.runs.columns} | {"seq": number}
            connection.execute(insert(t.runs), fresh)
        if sides.source.kind == "postgresql":
            connection.execute(text("SELECT setval(pg_get_serial_sequence('runs', 'seq'), :last)"), {"last": last + 2})
        connection.execute(text("DELETE FROM runs WHERE seq > :last"), {"last": last})
    transfer = sides.transfer()
    transfer.begin(RELEASE)
    transfer.copy(silent)
    transfer.finish()
    with sides.target.writing() as connection:
        fresh = {c.name: value(t.runs, c, 5000) for c in t.runs.columns if c.name != "seq"}
        connection.execute(insert(t.runs), fresh)
        assert connection.execute(text("SELECT max(seq) FROM runs")).scalar() == last + 3
        pause = {c.name: value(t.pauses, c, 5000) for c in t.pauses.columns if c.name != "id"}
        connection.execute(insert(t.pauses), pause)
        assert connection.execute(text("SELECT max(id) FROM pauses")).scalar() == 3 * ROWS + 1


def test_a_target_with_anything_in_it_is_refused(sides: Sides) -> None:
    with closing(sides.target_place.open()):
        pass
    with sides.target.writing() as connection:
        connection.execute(insert(t.queues), {c.name: value(t.queues, c, 1) for c in t.queues.columns})
    before = content(sides.target)
    with pytest.raises(Refused, match="is not empty: there are rows in queues"):
        sides.transfer().begin(RELEASE)
    assert content(sides.target) == before
    sides.target_place.open().close()


def test_the_rest_of_another_copy_is_refused(sides: Sides) -> None:
    sides.transfer().begin(RELEASE)
    with sides.target.writing() as connection:
        connection.execute(update(t.installation).where(t.installation.c.key == "copying from").values(value="/other"))
    with pytest.raises(Refused, match="part of a copy of /other"):
        sides.transfer().begin(RELEASE)


def test_a_copy_that_lacks_rows_is_seen(sides: Sides) -> None:
    transfer = sides.transfer()
    transfer.begin(RELEASE)
    transfer.copy(silent)
    with sides.target.writing() as connection:
        connection.execute(text("DELETE FROM skips WHERE id = 3"))
    assert transfer.compare() == [f"skips: {ROWS - 1} rows instead of {ROWS}"]


def test_what_was_copied_before_the_source_was_used_again_is_not_kept(sides: Sides) -> None:
    """Its rows are as many as before, but others."""
    transfer = sides.transfer()
    transfer.begin(RELEASE)
    transfer.copy(silent)
    sides.source_place.open().close()
    with sides.source.writing() as connection:
        connection.execute(update(t.runs).values(status="COMPLETED"))
    with pytest.raises(Refused, match=r"a daemon used .* while it was copied"):
        transfer.finish()
    again = sides.transfer()
    assert again.begin(RELEASE) is Begun.ANEW
    again.copy(silent)
    assert again.compare() == []
    again.finish()
    assert content(sides.target) == moved(content(sides.source))


def test_a_daemon_that_was_stopped_and_goes_on_is_seen(fresh_postgres_place: Place, tmp_path: Path) -> None:
    """It opens nothing: it raises its beat. Once the ledger is marked its node holds nothing, and none registers."""
    with closing(open_database(fresh_postgres_place.url, tmp_path)) as source:
        fill(source)
        with source.writing() as connection:
            connection.execute(update(t.nodes).values(state="live", beat_at=source.now() - timedelta(seconds=31)))
        with closing(open_database("", tmp_path / "new")) as target:
            transfer = Transfer(source, target)
            transfer.begin(RELEASE)
            transfer.copy(silent)
            with closing(fresh_postgres_place.open()) as store, store.begin() as tx:
                assert tx.nodes.renew("nodes-id-1", T0, generation=1)
            with pytest.raises(Refused, match="a daemon used"):
                transfer.finish()
            again = Transfer(source, target)
            assert again.begin(RELEASE) is Begun.ANEW
            again.copy(silent)
            again.finish()
        store = SqlStore(source)
        with store.begin() as tx:
            assert not tx.nodes.renew("nodes-id-1", T0, generation=1)
        with pytest.raises(StartError, match=r"was moved to .* while this daemon was stopped"), store.begin() as tx:
            tx.nodes.register(Node("fresh", "host", 1, RELEASE, T0, timedelta(minutes=3), 8, None), T0)
        with source.reading() as connection:
            assert "fresh" not in connection.execute(select(t.nodes.c.id)).scalars().all()


def test_killed_between_both_sides(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither can be used then, and the same again finishes it."""
    transfer = sides.transfer()
    transfer.begin(RELEASE)
    transfer.copy(silent)

    def killed(self: Transfer) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Transfer, "_writing", killed)
        with pytest.raises(KeyboardInterrupt):
            transfer.finish()
    with pytest.raises(StartError, match="was moved to"):
        sides.source_place.open()
    with pytest.raises(StartError, match="unfinished copy"):
        open_store(sides.target_place.url, sides.target_place.state_dir, release=RELEASE)
    again = sides.transfer()
    assert again.begin(RELEASE) is Begun.AGAIN
    again.copy(silent)
    assert again.compare() == []
    again.finish()
    sides.target_place.open().close()
    assert sides.transfer().begin(RELEASE) is Begun.DONE


def test_a_ledger_that_was_moved_is_not_moved_elsewhere(sides: Sides, tmp_path: Path) -> None:
    """Two daemons would have one history."""
    transfer = sides.transfer()
    transfer.begin(RELEASE)
    transfer.copy(silent)
    transfer.finish()
    with closing(open_database("", tmp_path / "third")) as third:
        with pytest.raises(Refused, match=r"was moved to .* before"):
            Transfer(sides.source, third).begin(RELEASE)
        place = sides.source_place
        open_store(place.url, place.state_dir, release=RELEASE, after_restore=True).close()
        assert Transfer(sides.source, third).begin(RELEASE) is Begun.NEW


def test_of_two_copies_at_once_the_later_one_goes_on(sides: Sides) -> None:
    first, second = sides.transfer(), sides.transfer()
    first.begin(RELEASE)
    assert second.begin(RELEASE) is Begun.AGAIN
    with pytest.raises(Refused, match="another `schedctl db copy` goes on"):
        first.copy(silent)
    second.copy(silent)
    with pytest.raises(Refused, match=r"a daemon used|another"):
        first.finish()
    second.finish()
    assert content(sides.target) == moved(content(sides.source))


def test_a_target_of_another_release_stays_as_it_is(sides: Sides) -> None:
    sides.target_place.open().close()
    with sides.target.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Refused, match="has schema 9999, which is newer"):
        sides.transfer().begin(RELEASE)
    with sides.target.writing() as connection:
        connection.execute(insert(t.queues), {c.name: value(t.queues, c, 1) for c in t.queues.columns})
        connection.execute(text("DROP TABLE scan_asides"))
        connection.execute(text("UPDATE alembic_version SET version_num = '0004'"))
    with pytest.raises(Refused, match="is not empty: there are rows in queues"):
        sides.transfer().begin(RELEASE)
    with sides.target.reading() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "0004"


def test_a_source_of_another_release_is_refused(sides: Sides) -> None:
    with sides.source.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(Refused, match="has schema 0001"):
        sides.transfer().begin(RELEASE)


def test_a_server_that_a_daemon_uses_is_refused(fresh_postgres_place: Place, tmp_path: Path) -> None:
    with closing(open_database(fresh_postgres_place.url, tmp_path)) as source:
        node = {c.name: value(t.nodes, c, 1) for c in t.nodes.columns}
        with source.writing() as connection:
            connection.execute(insert(t.nodes), node | {"state": "live", "beat_at": source.now()})
        with closing(open_database("", tmp_path / "new")) as target:
            with pytest.raises(Refused, match="in use by the daemon with pid 1 on"):
                Transfer(source, target).begin(RELEASE)
            for state, age in (("stopped", 0), ("dead", 0), ("live", 31)):
                with source.writing() as connection:
                    beat_at = source.now() - timedelta(seconds=age)
                    connection.execute(update(t.nodes).values(state=state, beat_at=beat_at))
                Transfer(source, target).begin(RELEASE)

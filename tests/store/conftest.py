from tests.databases import (  # noqa: F401
    empty_postgres_url,
    fresh_place,
    fresh_postgres_place,
    place,
    postgres_database,
    postgres_place,
    postgres_server,
    sqlite_place,
    sqlite_template,
    store,
)

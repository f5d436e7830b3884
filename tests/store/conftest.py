from tests.databases import (  # noqa: F401
    empty_postgres_url,
    place,
    postgres_place,
    postgres_server,
    sqlite_place,
    sqlite_template,
    store,
)

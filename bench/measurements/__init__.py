"""One file per measurement: `ORDER`, `TITLE`, `BARS`, and `run(session)`, which yields rows."""

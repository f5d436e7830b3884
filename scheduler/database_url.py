"""SCHEDULER_DATABASE_URL: which addresses can be used. What is wrong is said without them: they hold passwords."""

from __future__ import annotations

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9]{0,30})(?:\+[A-Za-z0-9_]+)?:")
_POSTGRESQL = "postgresql://user:password@host:5432/name"
_SQLITE = "sqlite:////var/lib/schedulerd/scheduler.db"
# As the store's library divides it.
_ADDRESS = re.compile(
    r"//(?:[^:/]*(?::[^@]*)?@)?(?:\[[^/?]+\]|[^/:?]+)?(?::(?P<port>[^/?]*))?(?:/[^?]*)?(?:\?(?P<options>.*))?"
)
_PASSWORD = re.compile(r"(?:^|&)(?:password|sslpassword)=", re.IGNORECASE)


def usable_url(text: str) -> str:
    """The address as the store takes it: `sqlite:////absolute/path` or `postgresql://…`, the names of drivers dropped.

    ValueError with reason and remedy, and nothing of the address in it, for everything else."""
    found = _SCHEME.match(text)
    if found is None:
        raise ValueError(f"it is no URL: write {_POSTGRESQL} or {_SQLITE}")
    scheme, rest = found[1].lower(), text[found.end() :]
    if scheme == "sqlite":
        return _sqlite(rest)
    if scheme in ("postgresql", "postgres"):
        return _postgresql(rest)
    raise ValueError(f"there is no support for {scheme}: write {_POSTGRESQL}, or {_SQLITE} for one machine")


def _sqlite(rest: str) -> str:
    path = rest.removeprefix("//").removeprefix("/")
    if path in ("", ":memory:") or ":memory:" in path or "mode=memory" in path:
        raise ValueError(f"nothing in memory would survive a restart: name a file, {_SQLITE}")
    if "?" in path:
        raise ValueError(f"options behind the path are not supported: write {_SQLITE}")
    if not rest.startswith("///") or not path.startswith("/"):
        raise ValueError(f"the path must be absolute, which takes four slashes: {_SQLITE}")
    return f"sqlite:///{path}"


def _postgresql(rest: str) -> str:
    if not rest.startswith("//"):
        raise ValueError(f"// is missing: write {_POSTGRESQL}")
    if re.search(r"[\s\x00-\x1f]", rest):
        raise ValueError("a blank or control character: in user, password and options write it encoded, a blank as %20")
    if rest.count("@") > 1:
        raise ValueError("more than one @: in user, password and options write @ as %40, and % as %25")
    found = _ADDRESS.fullmatch(rest)
    if found is None or not re.fullmatch(r"[0-9]{0,5}", found["port"] or ""):
        raise ValueError(f"the port is no number: write {_POSTGRESQL}")
    if _PASSWORD.search(found["options"] or ""):
        raise ValueError(f"a password among the options would be shown: write {_POSTGRESQL}")
    return f"postgresql:{rest}"

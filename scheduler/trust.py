"""Whom this machine trusts when it speaks TLS."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

import certifi


def trusted() -> ssl.SSLContext:
    """The certificates of this machine (SSL_CERT_FILE and SSL_CERT_DIR are heeded); where there are none, those that
    come with certifi. Read once per process and place."""
    return _read(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=8)
def _read(file: str | None, folder: str | None) -> ssl.SSLContext:
    paths = ssl.get_default_verify_paths()
    found = paths.capath
    if paths.cafile or (found and os.path.isdir(found) and os.listdir(found)):
        return ssl.create_default_context()
    return ssl.create_default_context(cafile=certifi.where())

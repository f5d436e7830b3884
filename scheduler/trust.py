"""Whom this machine trusts when it speaks TLS."""

from __future__ import annotations

import os
import ssl

import certifi


def trusted() -> ssl.SSLContext:
    """The certificates of this machine (SSL_CERT_FILE and SSL_CERT_DIR are heeded); where there are none, those that
    come with certifi."""
    paths = ssl.get_default_verify_paths()
    folder = paths.capath
    if paths.cafile or (folder and os.path.isdir(folder) and os.listdir(folder)):
        return ssl.create_default_context()
    return ssl.create_default_context(cafile=certifi.where())

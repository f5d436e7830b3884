"""Files without a name, in memory where the system can do that."""

from __future__ import annotations

import os
import tempfile
from typing import IO


def anonymous_file(content: bytes = b"") -> IO[bytes]:
    """Open for reading and writing at its beginning; gone when the last descriptor is closed."""
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("schedulerd", os.MFD_CLOEXEC), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115 -- the caller closes it
    file.write(content)
    file.seek(0)
    return file

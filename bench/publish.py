"""`python -m bench.publish`: writes the newest figures into docs/performance.md, between its two marks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bench.measurement import discover
from bench.report import markdown
from bench.results import load

PAGE = Path(__file__).parent.parent / "docs" / "performance.md"
BEGIN, END = "<!-- figures: python -m bench.publish -->", "<!-- end of figures -->"


def published(page: str, figures: str) -> str:
    """The page with these figures. ValueError if it has no place for them."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    # The page's own headings are one level higher.
    return f"{before}{BEGIN}\n\n{re.sub('^## ', '### ', figures, flags=re.MULTILINE)}\n{END}{after}"


if __name__ == "__main__":
    results = load(discover(), full=True)
    if not results:
        sys.exit("nothing has been measured yet: make bench")
    PAGE.write_text(published(PAGE.read_text(), markdown(results)))

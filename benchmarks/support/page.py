"""Tables in the documentation that a benchmark writes anew."""

from pathlib import Path

from taso_gym.atomic import write_text

DOCS = Path(__file__).parents[2] / "docs"


def write_between(mark: str, text: str, page: str = "results.md") -> None:
    """Write text between ``<!-- mark: begin -->`` and ``<!-- mark: end -->`` in a page of the documentation."""
    begin, end = (f"<!-- {mark}: {place} -->" for place in ("begin", "end"))
    written = (DOCS / page).read_text(encoding="utf-8")
    if begin not in written or end not in written:
        raise SystemExit(f"expected the marks {begin} and {end} in {DOCS / page}, found none")
    write_text(DOCS / page, f"{written.partition(begin)[0]}{begin}\n{text}{end}{written.partition(end)[2]}")

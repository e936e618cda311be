"""Tables in docs/results.md that a benchmark writes anew."""

from pathlib import Path

from taso_gym.atomic import write_text

PAGE = Path(__file__).parents[2] / "docs" / "results.md"


def write_between(mark: str, text: str) -> None:
    """Write text between ``<!-- mark: begin -->`` and ``<!-- mark: end -->``."""
    begin, end = (f"<!-- {mark}: {place} -->" for place in ("begin", "end"))
    page = PAGE.read_text(encoding="utf-8")
    if begin not in page or end not in page:
        raise SystemExit(f"expected the marks {begin} and {end} in {PAGE}, found none")
    write_text(PAGE, f"{page.partition(begin)[0]}{begin}\n{text}{end}{page.partition(end)[2]}")

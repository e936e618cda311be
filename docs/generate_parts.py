"""Write anew what is generated within the pages of docs/: what stands between <!-- begin NAME --> and <!-- end -->.

python docs/generate_parts.py
"""

import html
import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.cli import get_docs_for_click

from taso_gym.atomic import write_text
from taso_gym.cost import COST_MODELS
from taso_gym.cost.devices import DEFAULT_DEVICE, DEVICES
from taso_gym.cost.recorded import table_names
from taso_gym.rules.functions import FUNCTIONS, Function
from taso_gym.search import SEARCHES

FOLDER = Path(__file__).parent
APPS = {"taso-gym": "taso_gym.cli", "taso-agents": "taso_agents.cli", "taso-gen-subst": "taso_substitutions.cli"}
"""Command -> module with its typer app."""
MARKED = re.compile(r"(<!-- begin (?P<name>[^>]*) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def words(item: Any) -> str:
    """A docstring as one line of Markdown."""
    return " ".join((inspect.getdoc(item) or "").split()).replace("``", "`")


def sentence(item: Any) -> str:
    """The first sentence of a docstring."""
    return re.split(r"\.(?: |$)", words(item))[0]


def commands() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield each command with what typer says about it: usage, arguments and options, as `--help` does."""
    for app, module in APPS.items():
        group: Any = typer.main.get_command(import_module(module).app)
        context = group.make_context(app, [], resilient_parsing=True)
        yield app, partial(index, app, group)
        for name, command in group.commands.items():
            yield f"{app} {name}", partial(options, app, command, context)


def options(app: str, command: Any, context: Any) -> str:
    """What typer's own generator writes below the heading; the `-h` that all have is said once, on the page."""
    text = get_docs_for_click(obj=command, ctx=context, call_prefix=app).partition("\n\n")[2]
    return html.unescape(text.replace("* `-h, --help`: Show this message and exit.\n", "")).strip() + "\n"


def index(app: str, group: Any) -> str:
    """The commands of an app with the first sentence of each."""
    rows = [(f"[`{app} {name}`](#{app}-{name})", sentence(c.callback)) for name, c in group.commands.items()]
    return table(("command", "what it does"), rows)


def functions() -> str:
    """The functions that rules may call."""
    return table(("function", "what it gives"), [(f"`{call(n, f)}`", words(f.apply)) for n, f in FUNCTIONS.items()])


def call(name: str, function: Function) -> str:
    """A function with its parameters, as a rule writes it."""
    named = list(inspect.signature(function.apply).parameters)
    least = len(named) - function.optional
    return (
        f"{name}({', '.join([*named[:least], *(f'{n}?' for n in named[least:])])}{', …' if function.variadic else ''})"
    )


def devices() -> str:
    """The devices that rooflines are known of."""
    rows = [
        (f"`roofline:{name}`{' (`roofline`)' if name == DEFAULT_DEVICE else ''}", device.summary)
        for name, device in DEVICES.items()
    ]
    return table(("`--cost`", "device"), rows)


def costs() -> str:
    """The cost models."""
    rows: list[tuple[str, str]] = []
    for name, path in COST_MODELS.items():
        module, _, attribute = path.partition(":")
        tables = f" Tables of the package: {', '.join(table_names())}." if name == "recorded" else ""
        rows.append((f"`{name}`", words(getattr(import_module(module), attribute)) + tables))
    return table(("`--cost`", "what it is"), rows)


def searches() -> str:
    """The searches, by the first sentence of their modules."""
    rows = [(f"`{name}`", sentence(import_module(path.partition(":")[0]))) for name, path in SEARCHES.items()]
    return table(("`--search`", "what it does"), rows)


PARTS: dict[str, Callable[[], str]] = {
    **dict(commands()),
    "cost models": costs,
    "devices": devices,
    "functions": functions,
    "searches": searches,
}


def filled(page: str) -> str:
    """A page with its parts written anew; one that there isn't is a KeyError."""
    return MARKED.sub(lambda found: f"{found[1]}\n{PARTS[found['name']]()}\n{found[3]}", page)


def names(page: str) -> list[str]:
    """The parts that a page has."""
    return [found["name"] for found in MARKED.finditer(page)]


def main() -> None:
    """Write all pages that have parts."""
    for path in sorted(FOLDER.glob("*.md")):
        page = path.read_text(encoding="utf-8")
        if found := names(page):
            write_text(path, filled(page))
            print(f"{len(found)} parts in {path.name}")


if __name__ == "__main__":
    main()

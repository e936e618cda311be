"""What the documentation shows works, and every id has its page."""

import inspect
import re
import runpy
from pathlib import Path

import gymnasium as gym
import onnx
import pytest
from example_runs import run

import taso_gym
from taso_gym.env import TasoGraphEnv
from taso_gym.observation import EXTRA_VIEWS
from taso_gym.reward import REWARDS
from taso_gym.rules.functions import FUNCTIONS
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_substitutions.verify.levels import assess

gym.register_envs(taso_gym)
ROOT = Path(__file__).parents[1]
IDS = sorted(name for name in gym.registry if name.startswith("TasoGraph"))
PAGES = sorted((ROOT / "docs").glob("*.md"))
HINT = "run `make docs`"


def code_blocks(heading: str) -> list[str]:
    """Return the Python of a section of the README."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def test_every_id_has_a_page():
    assert sorted(path.stem for path in (ROOT / "docs/environments").glob("*.md")) == IDS, HINT
    index = (ROOT / "docs/environments.md").read_text(encoding="utf-8")
    assert all(f"(environments/{name}.md)" in index for name in IDS), HINT


@pytest.mark.parametrize("env_id", IDS)
def test_a_page_says_what_the_class_says(env_id):
    _, _, sections = inspect.getdoc(TasoGraphEnv).partition("\n\n")
    text = (ROOT / f"docs/environments/{env_id}.md").read_text(encoding="utf-8")
    assert sections in text, HINT
    assert env_id == "TasoGraph-v0" or f"MultiDiscrete([{len(RuleSet.load()) + 1} 200])" in text, HINT
    headings = ["This environment", "Description", "Action Space", "Observation Space", "Rewards", "Starting State"]
    headings += ["Episode End", "Arguments", "Info", "Version History"]
    assert re.findall(r"^## (.*)", text, re.MULTILINE) == headings


def names_in(section: str) -> set[str]:
    """Return what the first column of a section's table of the class's docstring names, and what its text quotes."""
    text = (inspect.getdoc(TasoGraphEnv) or "").split(f"## {section}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return {name for cell in cells for name in cell.strip().split(", ")} | set(re.findall(r"`(\w+)`", text))


def test_the_docstring_names_every_key_argument_and_reward():
    made: list[gym.Env] = [
        TasoGraphEnv("SqueezeNet1.1", extra_views=EXTRA_VIEWS, location_counts=counts) for counts in (False, True)
    ]
    keys = {key for env in made for key in env.observation_space.spaces}
    assert keys <= names_in("Observation Space")
    assert set(made[0].reset()[1]) <= names_in("Info")
    assert set(inspect.signature(TasoGraphEnv).parameters) <= names_in("Arguments")
    assert set(REWARDS) <= names_in("Rewards")


@pytest.fixture(scope="module")
def parts():
    return runpy.run_path(str(ROOT / "docs/generate_parts.py"))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_what_is_generated_within_a_page_is_up_to_date(page, parts):
    text = page.read_text(encoding="utf-8")
    assert parts["filled"](text) == text, HINT


def test_every_command_and_function_is_on_a_page(parts):
    found = [name for page in PAGES for name in parts["names"](page.read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(parts["PARTS"])


def test_every_function_of_rules_says_what_it_gives():
    assert all(inspect.getdoc(function.apply) for function in FUNCTIONS.values())


def test_examples_of_rules_are_what_the_page_says():
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    rules = [
        r
        for text in re.findall(r"^`\w+\.rules`:\n\n```\n(.*?)```", page, re.DOTALL | re.MULTILINE)
        for r in parse_rules(text)
    ]
    assert len(rules) == 9
    shown = {rule.name: getattr(assess(rule), "status", "false") for rule in rules}
    assert {name: status for name, status in shown.items() if status != "proved"} == {
        "add-first": "false",
        "relu-of-sum": "false",
    }


def test_the_first_lines_of_the_readme_make_an_environment():
    run("-c", code_blocks("Play the game")[0])


def test_the_newcomers_script_trains_something(tmp_path):
    script = code_blocks("Play the game")[1].replace("learn(2048)", "learn(256)")
    script = script.replace('"optimised.onnx"', repr(str(tmp_path / "optimised.onnx")))
    assert "% saved" in run("-c", script)
    onnx.checker.check_model(tmp_path / "optimised.onnx")


def anchors(page: Path) -> set[str]:
    """Return what links to a part of a page say after the ``#``."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("pages", ["*.md", "docs/*.md", "docs/environments/*.md", "packages/**/README.md"])
def test_links_lead_somewhere(pages):
    found = sorted(ROOT.glob(pages))
    assert found
    for page in found:
        check_links(page)


def check_links(page: Path) -> None:
    """Assert that all that a page links to within the repository is there."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, part = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page} links to {path}, which isn't there"
        assert not part or part in anchors(there), f"{page} links to {target}, whose part isn't there"

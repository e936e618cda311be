"""Every rule that taso-gen-subst wrote for the package is shown, holds on sampled instances, and can be played with."""

import gymnasium as gym
import numpy as np
import pytest

from taso_gym.rules.files import generated_sets
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet, operators_of
from taso_substitutions.verify import Passed, check_rule

BASIS = RuleSet.load("basis", numerics="fast")
FULL = RuleSet.load("full", numerics="fast")


@pytest.mark.parametrize("rules", [BASIS, FULL], ids=["basis", "full"])
def test_every_rule_has_a_certificate_of_more_than_tests(rules: RuleSet) -> None:
    assert {rules.certificates[rule.name] for rule in rules} <= {"proved", "bounded", "analytic"}


@pytest.mark.parametrize("rule", BASIS, ids=lambda rule: rule.name)
def test_the_basis_holds_on_sampled_instances(rule: Rule) -> None:
    found = check_rule(rule, instances=6, draws=1, seed=1)
    assert isinstance(found, Passed), str(found)


@pytest.mark.slow
@pytest.mark.parametrize("rule", FULL, ids=lambda rule: rule.name)
def test_all_hold_on_many_instances(rule: Rule) -> None:
    found = check_rule(rule, instances=24, draws=4, seed=2)
    assert isinstance(found, Passed), str(found)


@pytest.mark.parametrize("name", generated_sets())
def test_no_softmax_is_written_out_by_default(name: str) -> None:
    """Its exponentials would overflow."""
    assert [rule.text for rule in RuleSet.load(name) if "Exp" in operators_of(rule.rhs) - operators_of(rule.lhs)] == []


def test_files_are_found_by_name() -> None:
    assert set(generated_sets()) == {"basis", "full"}


def test_an_environment_plays_the_basis() -> None:
    env = gym.make("TasoGraph-SqueezeNet1.1-v0", rules="basis", max_steps=3)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        *_, terminated, truncated, _ = env.step(env.unwrapped.sample_valid(rng))  # pyright: ignore[reportAttributeAccessIssue]
        if terminated or truncated:
            break
    env.close()

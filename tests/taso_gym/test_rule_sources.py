"""Rules of an environment: a set by name, a file, TASO's format; their digest goes with all that is made."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from games import rule_set, rules_file, tiny_env, tiny_graph
from rule_discovery import SMALL, run

from taso_gym.env import TasoGraphEnv
from taso_gym.errors import RuleError
from taso_gym.replay import Replay
from taso_gym.rules.files import READERS, package_sets
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.state import check as check_state
from taso_substitutions.verify import certify

SHIPPED = str(Path(__file__).parents[1] / "data" / "taso" / "graph_subst.pb")


def digest_in_info(env: gym.Env) -> str:
    """Return the digest that an environment's info holds, as text."""
    return env.reset()[1]["rules_digest"].tobytes().hex()


def play(env: gym.Env, steps: int = 20) -> int:
    """Play legal actions and return how many rules took part."""
    env.reset(seed=0)
    rng, xfers = np.random.default_rng(0), set()
    for _ in range(steps):
        _, _, terminated, truncated, info = env.step(env.unwrapped.sample_valid(rng))
        assert not info["invalid_action"]
        xfers.add(int(info["xfer"]))
        if terminated or truncated:
            env.reset()
    check_state(env.unwrapped.state)
    return len(xfers - {env.unwrapped.layout.xfers})


@pytest.mark.parametrize("rules", ["default", SHIPPED], ids=["hand-written", "TASO"])
def test_a_network_is_played_with_rules_of_each_source(rules):
    env = gym.make("TasoGraph-NasRNN-v0", rules=rules)
    assert digest_in_info(env) == RuleSet.load(rules).digest == Replay.of(env.unwrapped).rules_digest
    assert play(env) > 0


def test_a_graph_is_played_with_rules_that_were_discovered(tmp_path):
    assert run("generate", *SMALL, "-o", tmp_path / "found") == 0
    rules = str(tmp_path / "found" / "full.rules")
    with pytest.warns(UserWarning, match="aren't shown to hold"):  # they were generated without certificates
        env = gym.make("TasoGraph-v0", model=tiny_graph(), rules=rules)
    assert digest_in_info(env) == RuleSet.load(rules).digest == Replay.of(env.unwrapped).rules_digest
    assert play(env) > 0


def test_a_network_is_played_with_ones_own_rules(tmp_path):
    env = gym.make("TasoGraph-BERT-v0", rules=rules_file(tmp_path))
    assert digest_in_info(env) == rule_set().digest and play(env) > 1


@pytest.mark.parametrize("name", ["default", *package_sets()])
def test_a_set_of_the_package_is_named(name):
    env = TasoGraphEnv(tiny_graph(), rules=name)
    assert digest_in_info(env) == RuleSet.load(name).digest == env.rules.digest
    assert env.action_space.nvec[0] == len(RuleSet.load(name)) + 1


def test_sets_have_digests_of_their_own():
    digests = [RuleSet.load(name).digest for name in ["default", *package_sets()]]
    assert len(set(digests)) == len(digests)


def test_a_file_of_ones_own_is_named_by_its_path(tmp_path):
    path = tmp_path / "mine.rules"
    path.write_text("relu-twice: Relu(Relu(x)) => Relu(x)\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"1 of 1 rules in .* \(relu-twice\).*recheck .*mine.rules --write"):
        env = gym.make("TasoGraph-SqueezeNet1.1-v0", rules=str(path), disable_env_checker=True)
    assert digest_in_info(env) == RuleSet.load(path).digest
    assert env.action_space.nvec[0] == 2
    gym.make("TasoGraph-SqueezeNet1.1-v0", rules=str(path), disable_env_checker=True)  # warned of once


def test_rules_that_were_shown_are_used_without_a_warning(tmp_path):
    path = tmp_path / "mine.rules"
    path.write_text("relu-twice: Relu(Relu(x)) => Relu(x)\n", encoding="utf-8")
    certify(path, instances=4)
    env = TasoGraphEnv(tiny_graph(), rules=path)
    assert env.rules.uncertified == ()


@pytest.mark.parametrize("name", ["default", "basis", "full"])
def test_no_rule_of_the_package_is_uncertified(name):
    assert RuleSet.load(name, numerics="fast").uncertified == ()


def test_the_order_and_the_names_of_rules_are_part_of_the_digest():
    one, two = "a: Relu(Relu(x)) => Relu(x)", "b: Neg(Neg(x)) => x"
    texts = [f"{one}\n{two}", f"{two}\n{one}", one.replace("a:", "c:") + f"\n{two}"]
    assert len({digest_in_info(tiny_env(rules=rule_set(text))) for text in texts}) == 3


def test_numerics_and_portability_choose_among_the_rules():
    loose, exact = (TasoGraphEnv(tiny_graph(), numerics=numerics) for numerics in ("fast", "exact"))
    assert len(loose.rules) > len(TasoGraphEnv(tiny_graph()).rules) > len(exact.rules) > 0
    assert digest_in_info(loose) != digest_in_info(exact)
    assert len(TasoGraphEnv(tiny_graph(), portable=True).rules) < len(TasoGraphEnv(tiny_graph()).rules)


def test_a_replay_holds_the_digest():
    env = tiny_env()
    assert digest_in_info(env) == Replay.of(env).rules_digest


@pytest.mark.parametrize("suffix", sorted(READERS))
def test_a_damaged_file_is_refused(tmp_path, suffix):
    path = tmp_path / f"damaged{suffix}"
    path.write_bytes(b"\xff\xfe not rules \x00")
    with pytest.raises(RuleError, match="damaged"):
        TasoGraphEnv(tiny_graph(), rules=path)


def test_other_suffixes_and_names_are_refused(tmp_path):
    with pytest.raises(RuleError, match=r"expected a rule file \(\.rules"):
        TasoGraphEnv(tiny_graph(), rules=tmp_path / "rules.txt")
    with pytest.raises(RuleError, match="expected a rule set \\(default, "):
        TasoGraphEnv(tiny_graph(), rules="defaults")

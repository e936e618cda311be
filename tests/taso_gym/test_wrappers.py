"""The contract of every wrapper, and what each does of its own."""

from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
from games import illegal_actions, pickled, same, tiny_env
from gymnasium.utils.env_checker import check_env

from taso_gym.errors import OptionError
from taso_gym.wrappers import WRAPPERS, CandidateAction, FlattenAction, MaskInObs, ToGraphSpace, TwoStage

STACKS = {
    "FlattenAction": lambda env: FlattenAction(env),
    "CandidateAction": lambda env: CandidateAction(env),
    "TwoStage": lambda env: TwoStage(env),
    "ToGraphSpace": lambda env: ToGraphSpace(env),
    "MaskInObs": lambda env: MaskInObs(CandidateAction(env)),
    "MaskInObs-rllib": lambda env: MaskInObs(CandidateAction(env), "rllib"),
    "MaskInObs-tianshou": lambda env: MaskInObs(FlattenAction(env), "tianshou"),
    "MaskInObs-TwoStage": lambda env: MaskInObs(TwoStage(env), "pettingzoo"),
    "ToGraphSpace-CandidateAction": lambda env: ToGraphSpace(CandidateAction(env)),
}


@pytest.fixture(params=STACKS)
def wrap(request):
    return STACKS[request.param]


def legal(env, rng):
    """A random action that the masks allow."""
    mask = env.action_masks()
    if isinstance(env.action_space, gym.spaces.Discrete):
        return int(rng.choice(np.flatnonzero(mask)))
    return env.unwrapped.sample_valid(rng)


def play(env, steps, seed=0):
    """Steps with legal actions."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(steps):
        found.append(env.step(legal(env, rng)))
        if found[-1][2] or found[-1][3]:
            found.append(env.reset())
    return found


def test_all_wrappers_are_tested():
    assert set(WRAPPERS) <= set(STACKS)


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*Not able to test alternative render modes")
def test_gymnasium_checks_it(wrap):
    check_env(wrap(tiny_env()))


def test_no_legal_action_is_invalid(wrap):
    env = wrap(tiny_env(max_steps=15))
    env.reset(seed=0)
    steps = [step for step in play(env, 60) if len(step) == 5]
    assert not any(info["invalid_action"] for *_, info in steps)


def test_masks_are_in_method_and_info(wrap):
    env = wrap(tiny_env())
    for info in [env.reset(seed=0)[1], *(s[-1] for s in play(env, 5))]:
        assert info["action_mask"].dtype == np.int8
    assert same(info["action_mask"], env.action_masks().astype(np.int8))
    if isinstance(env.action_space, gym.spaces.Discrete):
        assert env.action_masks().shape == (env.action_space.n,)


def test_an_action_outside_the_mask_is_penalised(wrap):
    env = wrap(tiny_env())
    if not isinstance(env.action_space, gym.spaces.Discrete):
        pytest.skip("the mask of a pair is marginal")
    env.reset(seed=0)
    for action in np.flatnonzero(~env.action_masks())[:20]:
        _, reward, terminated, _, info = env.step(int(action))
        assert info["invalid_action"] and reward == -1 and not terminated


def test_nothing_is_raised_whatever_the_action_is(wrap):
    env = wrap(tiny_env())
    env.reset(seed=0)
    before = env.unwrapped.state
    for action in illegal_actions(10, 20):
        if isinstance(action, np.ndarray) and action.size == 1:
            continue  # the number 0, which is an action here
        observation, _, terminated, truncated, info = env.step(action)
        assert info["invalid_action"] and not terminated and not truncated
    assert env.unwrapped.state is before and observation in env.observation_space


@pytest.mark.parametrize("copied", [deepcopy, pickled], ids=["deepcopy", "pickle"])
def test_a_copy_continues_alike(wrap, copied):
    env = wrap(tiny_env())
    env.reset(seed=0)
    play(env, 7)
    other = copied(env)
    assert same(play(env, 20, seed=1), play(other, 20, seed=1))


def test_its_spec_makes_it_again(wrap):
    env = wrap(gym.make("TasoGraph-SqueezeNet1.1-v0", max_matches=32))
    spec = gym.envs.registration.EnvSpec.from_json(env.spec.to_json())
    assert repr(gym.make(spec).observation_space) == repr(env.observation_space)


def test_a_flat_action_is_xfer_and_location():
    env = FlattenAction(tiny_env())
    env.reset(seed=0)
    locations = env.unwrapped.layout.locations
    pairs = [divmod(int(a), locations) for a in np.flatnonzero(env.action_masks()[:-1])]
    assert pairs == [env.unwrapped.candidate_action(i) for i in range(len(pairs))]


def test_the_last_flat_action_ends_the_episode():
    for env in (FlattenAction(tiny_env()), CandidateAction(tiny_env())):
        env.reset(seed=0)
        assert env.action_masks()[-1]
        assert env.step(env.action_space.n - 1)[2] is True


def test_a_candidate_is_a_row_of_matches():
    env = CandidateAction(tiny_env())
    observation, _ = env.reset(seed=0)
    _, _, _, _, info = env.step(3)
    assert (info["xfer"], info["location"]) == tuple(observation["matches"][3, :2])


def test_two_stages_make_one_move():
    env, plain = TwoStage(tiny_env()), tiny_env()
    observation, _ = env.reset(seed=0)
    plain.reset(seed=0)
    xfer = int(np.flatnonzero(env.action_masks())[0])
    assert not observation["pending_xfer"].any()
    observation, reward, terminated, truncated, info = env.step(xfer)
    assert observation["pending_xfer"].nonzero()[0].tolist() == [xfer]
    assert (reward, terminated, truncated, info["step"]) == (0.0, False, False, 0)
    expected = plain.step((xfer, 0))
    observation, *rest = env.step(0)
    assert not observation.pop("pending_xfer").any()
    rest[-1].pop("action_mask")
    assert same((observation, *rest), expected)


def test_noop_takes_one_stage():
    env = TwoStage(tiny_env())
    env.reset(seed=0)
    assert env.step(env.unwrapped.layout.xfers)[2] is True


def test_an_illegal_location_forgets_the_rule():
    env = TwoStage(tiny_env())
    env.reset(seed=0)
    env.step(int(np.flatnonzero(env.action_masks())[0]))
    observation, reward, _, _, info = env.step(env.action_space.n - 1)
    assert info["invalid_action"] and reward == -1 and not observation["pending_xfer"].any()


@pytest.mark.parametrize(
    ("preset", "keys", "dtype"),
    [
        ("rllib", {"observations", "action_mask"}, np.float32),
        ("pettingzoo", {"observation", "action_mask"}, np.int8),
        ("tianshou", {"obs", "mask"}, np.bool_),
    ],
)
def test_a_preset_has_its_librarys_keys(preset, keys, dtype):
    env = MaskInObs(CandidateAction(tiny_env()), preset)
    observation, info = env.reset(seed=0)
    assert set(observation) == set(env.observation_space) == keys
    mask = observation[(keys & {"action_mask", "mask"}).pop()]
    assert mask.dtype == dtype and same(mask.astype(np.int8), info["action_mask"])


def test_a_flat_observation_is_scaled_by_its_bounds():
    env = MaskInObs(CandidateAction(tiny_env()), "rllib")
    vector = env.reset(seed=0)[0]["observations"]
    assert vector.ndim == 1 and vector.min() >= 0 and vector.max() == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaskInObs(tiny_env()), "wrap in FlattenAction"),
        (lambda: MaskInObs(FlattenAction(tiny_env()), "sb3"), "expected preset among rllib, .*, found 'sb3'"),
        (lambda: MaskInObs(FlattenAction(tiny_env()), []), r"expected preset among rllib, .*, found \[\]"),
        (lambda: MaskInObs(MaskInObs(CandidateAction(tiny_env()))), "expected observations of boxes .no MaskInObs"),
        (lambda: MaskInObs(FlattenAction(tiny_env()), flat="no"), "expected True or False as flat, found 'no'"),
    ],
    ids=["pairs", "name", "list", "twice", "flat"],
)
def test_mask_in_obs_says_what_it_needs(make, message):
    with pytest.raises(OptionError, match=message):
        make()


def test_actions_are_flattened_once():
    with pytest.raises(OptionError, match="expected an environment with actions"):
        FlattenAction(CandidateAction(tiny_env()))


@pytest.mark.parametrize(
    ("wrapper", "left", "message"),
    [
        (CandidateAction, "nodes", r"expected observations with rows at 'match_mask', found \['nodes'\]"),
        (ToGraphSpace, "nodes", r"expected observations with rows at 'edge_features', found \['nodes'\]"),
        (ToGraphSpace, "match_mask", r"expected observations with rows at 'nodes', found \['match_mask'\]"),
    ],
)
def test_what_an_observation_lacks_is_named(wrapper, left, message):
    with pytest.raises(OptionError, match=message):
        wrapper(gym.wrappers.FilterObservation(tiny_env(), [left]))


def test_the_graph_space_has_no_padding():
    env = ToGraphSpace(tiny_env())
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(20):
        graph, *_ = env.step(legal(env, rng))
        padded = env.unwrapped.observe()
        assert len(graph.nodes) == padded["node_mask"].sum() and len(graph.edge_links) == padded["edge_mask"].sum()
        ends = padded["edges"][padded["edge_mask"] == 1]
        assert same(graph.nodes[graph.edge_links], padded["nodes"][ends])


def test_a_choice_of_a_rule_is_not_told_as_the_move_before():
    env = TwoStage(tiny_env())
    env.reset(seed=0)
    assert env.step(env.action_space.n - 1)[-1]["invalid_action"]
    info = env.step(int(np.flatnonzero(env.action_masks())[0]))[-1]
    assert not info["invalid_action"] and (info["xfer"], info["location"]) == (-1, -1)


def first_rule(env):
    """A rule that may be chosen."""
    return int(np.flatnonzero(env.action_masks())[0])


def test_a_rule_is_forgotten_when_the_state_is_set():
    env = TwoStage(tiny_env())
    env.reset(seed=0)
    start = env.unwrapped.get_state()
    mask, xfer = env.action_masks(), first_rule(env)
    env.step(xfer)
    env.unwrapped.set_state(start)
    assert same(env.action_masks(), mask)
    assert env.step(xfer)[0]["pending_xfer"][xfer] == 1


@pytest.mark.parametrize("below", [lambda env: env, lambda env: gym.wrappers.FilterObservation(env, ["globals"])])
def test_a_state_that_was_set_is_seen_in_the_first_stage(below):
    env = TwoStage(below(tiny_env()))
    first, info = env.reset(seed=0)
    start = env.unwrapped.get_state()
    play(env, 6)
    env.unwrapped.set_state(start)
    observation, _, _, _, told = env.step(first_rule(env))
    assert observation in env.observation_space and observation.keys() == first.keys()
    assert all(same(observation[key], first[key]) for key in first.keys() - {"pending_xfer"})
    assert same({**told, "action_mask": None}, {**info, "action_mask": None})


@pytest.mark.parametrize("copied", [deepcopy, pickled], ids=["deepcopy", "pickle"])
def test_a_copy_knows_the_chosen_rule(copied):
    env = TwoStage(tiny_env())
    env.reset(seed=0)
    env.step(first_rule(env))
    other = copied(env)
    assert same(other.action_masks(), env.action_masks()) and same(other.step(0), env.step(0))

"""Pictures of a state."""

from xml.etree import ElementTree

import numpy as np
import pytest
from games import tiny_env, tiny_graph

from taso_gym.builder import GraphBuilder
from taso_gym.errors import MissingPackageError
from taso_gym.observation.features import FAMILIES
from taso_gym.render import RENDERERS
from taso_gym.render.placement import place
from taso_gym.render.scene import COLOURS, MARK
from taso_gym.tensor import TensorType


def rendered(mode, steps=1):
    """An environment after some moves, and its picture."""
    env = tiny_env(render_mode=mode)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(steps):
        env.step(env.sample_valid(rng))
    return env, env.render()


def test_every_mode_has_a_renderer():
    assert list(RENDERERS) == tiny_env().metadata["render_modes"]
    assert set(COLOURS) == set(FAMILIES)


def test_text_says_what_was_done():
    env, text = rendered("ansi")
    rule = env.rules[env.path[-1].rule].name
    assert text.splitlines()[0].startswith("step 1 · ") and rule in text.splitlines()[0]
    assert all(f"new: %{i} " in text for i in env.state.edit.added)


def test_text_lists_the_rules_that_apply():
    env, text = rendered("ansi", 0)
    first = next(i for i, found in enumerate(env.state.matches) if found)
    assert env.rules[first].name in text and "new:" not in text


def test_svg_draws_every_operator_and_marks_the_new_ones():
    env, text = rendered("svg")
    root = ElementTree.fromstring(text)
    boxes = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("rx")]
    assert len(boxes) == len(env.state.graph) + 1
    assert sum(r.get("stroke") == MARK for r in boxes) == len(env.state.edit.added)


def test_svg_escapes_names():
    env = tiny_env(render_mode="svg")
    env.reset()
    assert "Relu" in env.render() and "<&" not in env.render()


def test_images_have_one_size():
    images = [rendered("rgb_array", steps)[1] for steps in (0, 3)]
    assert [i.shape for i in images] == [(960, 1280, 3)] * 2 and images[0].dtype == np.uint8
    assert not np.array_equal(*images)


def test_without_matplotlib_the_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match="pip install matplotlib"):
        rendered("rgb_array", 0)


def test_no_two_operators_share_a_place_and_wires_go_down():
    placement = place(tiny_graph(blocks=4))
    places = [placement.place(i) for i in placement.layers]
    assert len(set(places)) == len(places)
    for producer, consumer in placement.wires:
        layers = [y for _, y in placement.route(producer, consumer)]
        assert layers == list(range(placement.layers[producer], placement.layers[consumer] + 1))


def test_without_a_mode_nothing_is_drawn():
    env = tiny_env()
    env.reset()
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None


@pytest.mark.parametrize("name", ["a$b_$c", "x\x01y\0", "<&>", "line\nbreak"])
@pytest.mark.parametrize("mode", RENDERERS)
def test_any_name_is_drawn(name, mode):
    builder = GraphBuilder({"": 20})
    builder.output("y", builder.add("Relu", builder.input(name, TensorType("float", (4, 8)))))
    env = tiny_env(model=builder.build(), render_mode=mode)
    env.reset()
    picture = env.render()
    if mode == "svg":
        labels = ElementTree.fromstring(picture).itertext()
        assert name.translate({0: "\ufffd", 1: "\ufffd"}) in labels

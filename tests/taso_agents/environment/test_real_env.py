"""Real environments by id or file."""

from typing import Any

import pytest
from games import tiny_graph

from taso_agents.environment.real_env import make_env
from taso_gym.errors import OptionError


@pytest.mark.parametrize("wrong", [None, 5, tiny_graph()])
def test_what_is_neither_id_nor_file_is_named(wrong: Any) -> None:
    with pytest.raises(OptionError, match="expected an id or the path of an ONNX file as model, found"):
        make_env(wrong)


def test_an_unknown_id_names_those_that_need_nothing_more() -> None:
    with pytest.raises(OptionError) as caught:
        make_env("TasoGraph-Nothing-v0")
    known = str(caught.value).removeprefix("expected an ONNX file or one of ").split(", ")
    assert "TasoGraph-BERT-v0" in known and "TasoGraphRecorded-BERT-v0" in known and "TasoGraph-v0" not in known


def test_an_environment_of_something_else_is_refused() -> None:
    with pytest.raises(OptionError, match="takes location_counts, found 'CartPole-v1'"):
        make_env("CartPole-v1")

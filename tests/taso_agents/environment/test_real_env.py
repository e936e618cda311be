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

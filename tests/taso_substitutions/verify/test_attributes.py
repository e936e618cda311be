import numpy as np
import pytest

from taso_substitutions.verify.attributes import ATTRIBUTES, ORDER
from taso_substitutions.verify.draw import Draw, Unfit
from taso_substitutions.verify.instance import KEYS

DRAW = Draw(np.random.default_rng(0))


def test_every_drawn_attribute_exists() -> None:
    assert [key for key in ATTRIBUTES if key[1] not in KEYS[key[0]].defaults] == []


def test_groups_are_drawn_before_what_may_be_anything() -> None:
    assert ORDER["Conv"][0] == "group"


def test_a_known_kernel_says_the_groups() -> None:
    image, kernel = (1, 6, 4, 4), (8, 3, 2, 2)
    assert {ATTRIBUTES["Conv", "group"](DRAW, image, {"operands": [image, kernel]}) for _ in range(20)} == {2}
    assert len({ATTRIBUTES["Conv", "group"](DRAW, image, {"operands": [image, None]}) for _ in range(50)}) == 4


def test_an_axis_is_one_along_which_operands_can_be_joined() -> None:
    operands = [(2, 3, 4), None, (2, 5, 4)]
    assert {ATTRIBUTES["Concat", "axis"](DRAW, (2, 3, 4), {"operands": operands}) for _ in range(20)} == {1}
    with pytest.raises(Unfit):
        ATTRIBUTES["Concat", "axis"](DRAW, (2, 3, 4), {"operands": [(2, 3, 4), (3, 3, 5)]})

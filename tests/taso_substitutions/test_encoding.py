import pytest
from rule_discovery import discovered

from taso_gym.errors import RuleError
from taso_substitutions.encoding import decode, encode
from taso_substitutions.fragments import FRAGMENTS


@pytest.mark.parametrize("name", [f.name for f in FRAGMENTS.values() if f.usual])
def test_equalities_survive(name: str) -> None:
    for equality in discovered(name).general:
        assert decode(encode(equality)) == equality


@pytest.mark.parametrize(
    "row", ["{}", '{"left": "x0"}', '{"left": 3, "right": "x0", "types": [], "attrs": []}', "[]", "no JSON"]
)
def test_other_values_are_refused(row: str) -> None:
    with pytest.raises(RuleError, match="expected an equality"):
        decode(row)

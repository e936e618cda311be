import pytest
from rule_discovery import sized

from taso_gym.errors import RuleError
from taso_substitutions.enumeration.enumerate import enumerate_fragment
from taso_substitutions.enumeration.fragments import FRAGMENTS
from taso_substitutions.equalities.candidates import Classes, candidates
from taso_substitutions.equalities.encoding import decode, encode


@pytest.mark.parametrize("name", [f.name for f in FRAGMENTS.values() if f.usual])
def test_equalities_survive(name: str) -> None:
    fragment = sized(name)
    table, evaluator = enumerate_fragment(fragment, 2)
    for _, equality in candidates(Classes(fragment, table, evaluator.trivial), 2):
        assert decode(encode(equality)) == equality


@pytest.mark.parametrize(
    "row", ["{}", '{"left": "x0"}', '{"left": 3, "right": "x0", "types": [], "attrs": []}', "[]", "no JSON"]
)
def test_other_values_are_refused(row: str) -> None:
    with pytest.raises(RuleError, match="expected an equality"):
        decode(row)

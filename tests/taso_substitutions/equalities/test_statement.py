from typing import Any

from rule_discovery import discovered, sized

from taso_gym.rules.notation import parse_rules
from taso_substitutions.enumeration.fragments import FRAGMENTS
from taso_substitutions.equalities.generalise import Generaliser
from taso_substitutions.equalities.statement import equalities, is_proved, survives
from taso_substitutions.equalities.terms import Equality, canonical
from taso_substitutions.generation.search import stated


def rules_of(name: str, start: str, *, lift: bool) -> list[str]:
    equality: Equality = next(e for e in discovered(name).general if e.body.startswith(start))
    return stated(equality, FRAGMENTS[name].example(), lift=lift)


def test_facts_become_conditions() -> None:
    assert equalities(["x0.1 = x1.0", "s0.0 = x2.3"]) == ["dim(x0, 1) == dim(x1, 0)", "s0[0] == dim(x2, 3)"]
    assert equalities(["x0.1 = inner"]) is None


def test_both_directions_are_stated() -> None:
    forward, backward = rules_of("matrix", "MatMul(MatMul(x0, x1), x2)", lift=False)
    assert forward.startswith("rule: MatMul(MatMul(x0, x1), x2) => MatMul(x0, MatMul(x1, x2))")
    assert backward.startswith("rule-back: MatMul(x0, MatMul(x1, x2)) => MatMul(MatMul(x0, x1), x2)")


def test_attributes_are_lifted() -> None:
    (first, *_) = rules_of("matrix", "Concat(Relu(x0), Relu(x1), axis=0)", lift=True)
    assert first == "rule [exact]: Concat(Relu(x0), Relu(x1), axis=a0) => Relu(Concat(x0, x1, axis=a0))"


def lifted(text: str, fragment: str = "movement", inputs: str = "xx") -> list[str]:
    (rule,) = parse_rules(f"r: {text}")
    types = {f"x{i}": sized(fragment).types()[name] for i, name in enumerate(inputs)}
    sides: list[Any] = [rule.lhs[0], rule.rhs[0]]
    return stated(canonical(sides[0], sides[1], types), FRAGMENTS[fragment].example(), lift=True)


def test_permutations_compose() -> None:
    first, *_ = lifted("Transpose(Transpose(x0, perm=[0, 2, 1]), perm=[1, 0, 2]) => Transpose(x0, perm=[2, 0, 1])")
    assert "=> Transpose(x0, perm=compose(" in first
    assert " if " not in first


def test_permutations_that_cancel_are_inverse() -> None:
    first, *_ = lifted("Transpose(Transpose(x0, perm=[1, 2, 0]), perm=[2, 0, 1]) => x0")
    assert first.endswith("if inverse(p0) == p1")


def test_where_slices_begin_and_end_is_lifted_by_itself() -> None:
    sides = (f"Slice({x}, axes=[1], ends=[2], starts=[0])" for x in ("Concat(x0, x1, axis=0)", "x0", "x1"))
    first, *_ = lifted("{} => Concat({}, {}, axis=0)".format(*sides))
    assert "axes=[1], ends=e1, starts=b2" in first


def test_a_concat_gives_a_rule_with_two_outputs() -> None:
    lines = rules_of("matrix", "Concat(MatMul(x0, x1), MatMul(x0, x2), axis=1)", lift=True)
    (split,) = [line for line in lines if line.startswith("split")]
    assert "MatMul(x0, x1), MatMul(x0, x2) => *Split(MatMul(x0, Concat(x1, x2, axis=1)), axis=1" in split


def test_sums_do_not_claim_to_keep_bits() -> None:
    assert not any("[exact]" in line for line in rules_of("matrix", "Concat(MatMul(", lift=False))


def test_false_rules_do_not_pass() -> None:
    (rule,) = parse_rules("r: Relu(Add(x, y)) => Add(Relu(x), Relu(y))")
    assert not survives(rule)


def test_a_rule_about_an_axis_needs_its_ranks() -> None:
    generaliser = Generaliser(FRAGMENTS["matrix"].example())
    start = "Concat(MatMul(x0, x1), MatMul(x0, x2), axis=1)"
    equality = next(e for e in discovered("matrix").general if e.body.startswith(start))
    assert generaliser.prove(equality) is not None
    assert all("rank(" in line for line in rules_of("matrix", start, lift=False))


CANCELLING = "Add(Sub(x0, x1), Add(x2, x1)) => Add(x0, x2)"


def test_what_is_dropped_must_not_be_the_largest() -> None:
    typing = (
        "rank(x0) == 2 and rank(x1) == 2 and rank(x2) == 2 and dim(x0, 0) == dim(x1, 0) and dim(x2, 0) == dim(x1, 0)"
    )
    (rule,) = parse_rules(f"r: {CANCELLING} if {typing} and dim(x0, 1) == dim(x2, 1)")
    assert not is_proved(rule)  # x1 may be the only one with several columns


def test_a_rule_that_drops_a_tensor_says_how_large_it_may_be() -> None:
    (line,) = lifted(CANCELLING, "layers", "xcx")
    assert line.endswith(" if broadcast(shape(x0), shape(x1), shape(x2)) == broadcast(shape(x0), shape(x2))")
    assert lifted("Sub(Add(x0, x1), x1) => x0", "layers", "xc")[0].endswith(
        " if broadcast(shape(x0), shape(x1)) == shape(x0)"
    )


def test_what_maps_over_elements_holds_for_all_shapes() -> None:
    forward, backward = lifted("Mul(Add(x0, x1), x2) => Add(Mul(x0, x2), Mul(x1, x2))", "scalar", "xxs")
    assert " if " not in forward + backward

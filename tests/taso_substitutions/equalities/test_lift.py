"""Rules of equalities with attributes that became variables."""

from rule_discovery import lifted, rules_of


def test_attributes_are_lifted() -> None:
    (first, *_) = rules_of("matrix", "Concat(Relu(x0), Relu(x1), axis=0)", lift=True)
    assert first == "rule [exact]: Concat(Relu(x0), Relu(x1), axis=a0) => Relu(Concat(x0, x1, axis=a0))"


def test_permutations_compose() -> None:
    first, *_ = lifted(
        "Transpose(Transpose(x0, perm=[0, 2, 1]), perm=[1, 0, 2]) => Transpose(x0, perm=[2, 0, 1])", "movement", "x"
    )
    assert "=> Transpose(x0, perm=compose(" in first
    assert " if " not in first


def test_permutations_that_cancel_are_inverse() -> None:
    first, *_ = lifted("Transpose(Transpose(x0, perm=[1, 2, 0]), perm=[2, 0, 1]) => x0", "movement", "x")
    assert first.endswith("if inverse(p0) == p1")


def test_where_slices_begin_and_end_is_lifted_by_itself() -> None:
    sides = (f"Slice({x}, axes=[1], ends=[2], starts=[0])" for x in ("Concat(x0, x1, axis=0)", "x0", "x1"))
    first, *_ = lifted("{} => Concat({}, {}, axis=0)".format(*sides), "movement", "xx")
    assert "axes=[1], ends=e1, starts=b2" in first


def test_a_concat_gives_a_rule_with_two_outputs() -> None:
    lines = rules_of("matrix", "Concat(MatMul(x0, x1), MatMul(x0, x2), axis=1)", lift=True)
    (split,) = [line for line in lines if line.startswith("split")]
    assert "MatMul(x0, x1), MatMul(x0, x2) => *Split(MatMul(x0, Concat(x1, x2, axis=1)), axis=1" in split


def test_what_is_joined_along_other_axes_than_it_is_cut_may_be_joined_after() -> None:
    line, *_ = lifted(
        "Slice(Concat(x0, x1, axis=2), axes=[1], ends=[4], starts=[2]) => "
        "Concat(Slice(x0, axes=[1], ends=[4], starts=[2]), Slice(x1, axes=[1], ends=[4], starts=[2]), axis=2)",
        "movement",
        "xy",
    )
    assert "axis=a" in line and line.partition(" if ")[2].endswith("!= 1")


def test_a_slice_may_be_of_the_first_of_joined_tensors() -> None:
    (line,) = lifted(
        "Slice(Concat(x0, x1, axis=1), axes=[1], ends=[4], starts=[2]) => Slice(x0, axes=[1], ends=[4], starts=[2])",
        "movement",
        "xy",
    )
    assert line.endswith("if e1[0] <= dim(x0, 1)")


def test_matrices_are_transposed_at_any_rank() -> None:
    first, back = lifted(
        "Transpose(MatMul(x0, x1), perm=[1, 0]) => MatMul(Transpose(x1, perm=[1, 0]), Transpose(x0, perm=[1, 0]))",
        "matrix",
        "xa",
    )
    assert all("p0 == range(rank(x1) - 2) + [rank(x1) - 1, rank(x1) - 2]" in line for line in (first, back))

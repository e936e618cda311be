"""The rewritten parts of a model are compared by themselves."""

import numpy as np
import pytest

from taso_gym.builder import GraphBuilder
from taso_gym.equivalence import check_site, drawn, validate, validation
from taso_gym.equivalence.site import site_of
from taso_gym.graph import Graph, producer_of
from taso_gym.symbolic import symbol
from taso_gym.tensor import TensorType
from taso_gym.weights import array_weight, literal

F32 = np.float32


def product(*, halves: float | None = None) -> Graph:
    """Return Relu(x a) b, or with b as the sum of two halves; what is in both has the same ids."""
    builder = GraphBuilder({"": 20})
    x = builder.input("x", TensorType("float", (symbol("N"), 4)))
    a = builder.weight("a", *array_weight(np.arange(16, dtype=F32).reshape(4, 4)))
    b = builder.weight("b", *array_weight(np.full((4, 4), 2, F32)))
    relu = builder.add("Relu", builder.add("MatMul", x, a))
    if halves is None:
        builder.output("y", builder.add("MatMul", relu, b))
    else:
        skip_ids(builder, 1)
        half = builder.weight("half", *array_weight(np.full((4, 4), halves, F32)))
        builder.output("y", builder.add("Add", *(builder.add("MatMul", relu, half) for _ in range(2))))
    return builder.build()


def skip_ids(builder: GraphBuilder, count: int) -> None:
    """Leave out ids as a rewrite does, which never uses one again."""
    for _ in range(count):
        builder._take_id()


def test_a_site_is_what_differs() -> None:
    before, after = product(), product(halves=1.0)
    site = site_of(before, after)
    relu = next(i for i, n in before.operators() if n.sig.op.name == "Relu")
    assert [producer_of(v) for v in site.inputs] == [relu]
    assert site.outputs == ((before.outputs[0], after.outputs[0]),)


def test_sites_are_compared_in_float64() -> None:
    report = check_site(product(), product(halves=1.0))
    assert report.ok
    assert report.max_relative_error < 1e-14
    assert report.draws == ("N=1", "N=2")
    wrong = check_site(product(), product(halves=1.0001))
    assert not wrong.ok
    assert 1e-5 < wrong.max_relative_error < 1e-3
    assert check_site(product(), product(halves=1.0001), tolerance=1e-3).ok


def test_rewritten_parts_are_computed_where_the_whole_can_not_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of 1e-5 is within the tolerance of float32 results, but not of a part in float64."""
    monkeypatch.setattr(validation, "REFERENCE_BYTES", 10)
    monkeypatch.setattr(drawn, "exact_magnitude", lambda *_: None)
    before, after, wrong = product(), product(halves=1.0), product(halves=1.00001)
    assert validate(before, after).is_float32_only
    report = validate(before, after, rewritten=(before, after))
    assert report.ok
    assert report.basis.startswith("float64 reference of the rewritten parts: largest relative error")
    assert validate(before, wrong).ok
    report = validate(before, wrong, rewritten=(before, wrong))
    assert not report.ok
    assert "different: the second model: in a rewritten part, different: output" in report.verdict


def test_a_site_where_nothing_differs() -> None:
    report = check_site(product(), product())
    assert report.ok
    assert not report.outputs


@pytest.mark.parametrize(("alpha", "ok"), [(1.0, True), (1.5, False)])
def test_a_value_may_be_replaced_by_one_that_it_was_computed_from(alpha: float, ok: bool) -> None:
    graphs: list[Graph] = []
    for removed in (False, True):
        builder = GraphBuilder({"": 20})
        x = builder.input("x", TensorType("float", (3,)))
        one = builder.weight("one", *literal(alpha, "float"))
        if removed:
            skip_ids(builder, 1)
        builder.output("y", builder.add("Relu", x if removed else builder.add("Mul", x, one)))
        graphs.append(builder.build())
    site = site_of(*graphs)
    assert site.inputs == graphs[0].info.inputs
    assert [y for _, y in site.outputs] == list(graphs[0].info.inputs)
    assert check_site(*graphs).ok is ok


def test_a_value_may_be_replaced_by_an_equal_one() -> None:
    """What takes its place is computed, too, where the site didn't read it before."""
    graphs: list[Graph] = []
    for merged in (False, True):
        builder = GraphBuilder({"": 20})
        x = builder.input("x", TensorType("float", (3,)))
        first = builder.add("Neg", x)
        if merged:
            skip_ids(builder, 1)
        second = first if merged else builder.add("Neg", x)
        builder.output("y", builder.add("Relu", first))
        builder.output("z", builder.add("Exp", second))
        graphs.append(builder.build())
    assert site_of(*graphs).inputs == graphs[0].info.inputs
    assert check_site(*graphs).ok


@pytest.mark.parametrize(("factor", "ok"), [(1.0, True), (1.5, False)])
def test_what_a_mask_leaves_has_a_magnitude_of_its_own(factor: float, ok: bool) -> None:
    """In float64 what is added to a fill stays there, so that it isn't the same in both."""
    graphs: list[Graph] = []
    for by in (1.0, factor):
        builder = GraphBuilder({"": 20})
        x = builder.input("x", TensorType("float", (2, 4)))
        mask = builder.weight("mask", *array_weight(np.array([0, 0, -1e9, -1e9], F32)))
        skip_ids(builder, len(graphs) * 2)
        scaled = builder.add("Mul", x, builder.weight("k", *literal(by, "float")))
        builder.output("y", builder.add("Add", scaled, mask))
        graphs.append(builder.build())
    assert check_site(*graphs).ok is ok

import re

import numpy as np
import pytest
from rule_discovery import discovered, sized, small

from taso_gym.rules.notation import parse_rules
from taso_substitutions.derivation.closure import Closure
from taso_substitutions.derivation.components import Web, components
from taso_substitutions.enumeration.enumerate import enumerate_fragment
from taso_substitutions.enumeration.fragments import FRAGMENTS
from taso_substitutions.equalities.candidates import Classes
from taso_substitutions.equalities.generalise import typed_rule
from taso_substitutions.generation.minimise import minimal
from taso_substitutions.generation.search import Found, Search
from taso_substitutions.generation.stages import Relate, related

USUAL = [f.name for f in FRAGMENTS.values() if f.usual]


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n == "scalar" else pytest.mark.slow) for n in USUAL])
def test_two_operators_are_derived_without_exception(name: str) -> None:
    result = discovered(name)
    assert result.statements
    assert not result.exceptions


def test_counts_are_those_that_are_documented() -> None:
    found = Search(small(), 1).run()
    assert re.findall('"(.+?)"', Found.__doc__ or "") == list(found.counts)


def test_a_statement_that_is_left_out_leaves_equalities_open() -> None:
    search = Search(sized("scalar"), 2)
    search.run()
    assert not len(search.web.open_rows(search.web.labels(search.web.ends, 2), 2))
    for key in search.statements:
        others = [name for name in search.statements if name != key]
        if len(search.web.open_rows(search.web.labels(others, 2), 2)):
            return
    pytest.fail("expected a statement that is needed")


def closure(name: str) -> Closure:
    fragment = sized(name)
    table, evaluator = enumerate_fragment(fragment, 2)
    return Closure(Classes(fragment, table, evaluator.trivial), evaluator)


def test_a_rule_connects_equal_values_only() -> None:
    (rule,) = parse_rules("r: MatMul(MatMul(x, y), z) => MatMul(x, MatMul(y, z))")
    found = closure("matrix")
    edges = found.edges(rule)
    assert len(edges.ends)
    assert (found.joins.value(edges.ends[:, 0]) == found.joins.value(edges.ends[:, 1])).all()


def test_a_false_rule_connects_nothing() -> None:
    (rule,) = parse_rules("r: MatMul(x, y) => MatMul(y, x) if rank(x) == 2 and shape(x) != shape(y)")
    assert not len(closure("matrix").edges(rule).ends)


def test_conditions_are_kept() -> None:
    loose, strict = parse_rules(
        "a: Relu(Add(x, y)) => Relu(Add(y, x))\nb: Transpose(Transpose(x, perm=p), perm=p) => x if rank(x) == 3"
    )
    found = closure("matrix")
    assert not len(found.edges(strict).ends)
    assert not len(found.edges(loose).ends)  # the same application


def test_a_lemma_holds_where_it_is_typed_alike() -> None:
    equality = next(e for e in discovered("matrix").general if e.body.startswith("MatMul(MatMul("))
    assert "rank(x0) == 2" in typed_rule(equality).text


def test_components_are_named_by_their_least_node() -> None:
    ends = np.array([[4, 3], [3, 1], [5, 6]])
    assert components(7, ends).tolist() == [0, 1, 2, 1, 1, 5, 5]


def test_an_edge_counts_from_its_level_on() -> None:
    web = Web(3, np.array([0]), np.array([2]), np.array([2]))
    web.add("a", np.array([[0, 2]]), np.array([3]))
    assert web.open_rows(web.labels(["a"], 2), 2).tolist() == [0]
    assert web.open_rows(web.labels(["a"], 3), 2).tolist() == []


def test_a_minimum_leaves_out_what_others_say() -> None:
    results = [discovered("matrix"), discovered("scalar")]
    every = {s.key: s for r in results for s in r.statements}
    uses = {
        r.fragment.name: dict(
            zip(every, related(Relate(r.fragment, 2, [s.lines for s in every.values()])), strict=True)
        )
        for r in results
    }
    kept = minimal({r.fragment.name: r.statements for r in results}, uses, lambda *_: None)
    assert 0 < len(kept) < len(every)
    assert set(kept) <= set(every)


def test_rules_of_more_operators_than_the_fragment_has_are_derived_by_saturation() -> None:
    search = Search(sized("scalar"), 2)
    search.run()
    ranks = "rank(x) == 2 and rank(y) == 2 and rank(z) == 2"
    deep, open_ = parse_rules(
        f"d: Relu(MatMul(MatMul(x, y), Relu(z))) => Relu(MatMul(x, MatMul(y, Relu(z)))) if {ranks}\n"
        f"o: Relu(Relu(Relu(MatMul(x, y)))) => Relu(MatMul(x, y)) if rank(x) == 2 and rank(y) == 2"
    )
    assert search.covers(deep) is True
    assert search.covers(open_) is False


def test_rules_about_constants_and_other_operands_are_derived_at_their_own_types() -> None:
    search = Search(sized("scalar"), 2)
    search.run()
    one, two, wide = parse_rules(
        "one: Relu(Mul(Mul(x, 1), s)) => Relu(Mul(x, s)) if rank(s) == 0 and rank(x) == 2\n"
        "two: Relu(Mul(Mul(x, 2), s)) => Relu(Mul(x, s)) if rank(s) == 0 and rank(x) == 2\n"
        "wide: Relu(MatMul(MatMul(x, MatMul(y, x)), y)) => Relu(MatMul(MatMul(x, y), MatMul(x, y))) if rank(x) == 2 "
        "and rank(y) == 2"
    )
    assert search.covers(one)
    assert not search.covers(two)
    assert search.covers(wide)

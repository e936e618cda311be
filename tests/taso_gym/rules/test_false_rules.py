"""Rules that look right and are false: each is caught by the sampled test, with a counterexample that says where."""

from dataclasses import replace

import pytest

from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.unparse import unparse_expr
from taso_substitutions.verify import Counterexample, check_rule

RULES = RuleSet.load("default", numerics="fast")

# Rules that TASO ships, with the group that its runtime infers from the channels: 99, 100, 130 and 131 join two
# convolutions into a grouped one (TASO's issue 62), 125 and 128 merge grouped convolutions of one tensor, 98 and 105
# add grouped convolutions; one of its built-in rules drops the factor after a convolution.
GROUPED = "Concat(x, y, axis=1), Concat(a, b, axis={axis}), group=(dim(x, 1) + dim(y, 1)) // dim({w}, 1), **k"
TASO = {
    "taso-99": "Concat(Conv(x, a, group=g, **k), Conv(y, b, group=h, **k), axis=1)"
    " => Conv(" + GROUPED.format(axis=0, w="a") + ")"
    " if shape(a)[1:] == shape(b)[1:] and (dim(a, 0) + dim(b, 0)) % ((dim(x, 1) + dim(y, 1)) // dim(a, 1)) == 0",
    "taso-100": "Concat(Relu(Conv(x, a, group=g, **k)), Relu(Conv(y, b, group=h, **k)), axis=1)"
    " => Relu(Conv(" + GROUPED.format(axis=0, w="a") + "))"
    " if shape(a)[1:] == shape(b)[1:] and (dim(a, 0) + dim(b, 0)) % ((dim(x, 1) + dim(y, 1)) // dim(a, 1)) == 0",
    "taso-125": "Concat(Conv(x, a, **k), Conv(x, b, **k), axis=1) => Conv(x, Concat(a, b, axis=0), **k)"
    " if shape(a)[1:] == shape(b)[1:]",
    "taso-128": "Concat(Relu(Conv(x, a, **k)), Relu(Conv(x, b, **k)), axis=1)"
    " => Relu(Conv(x, Concat(a, b, axis=0), **k)) if shape(a) == shape(b)",
    "taso-98": "Add(Conv(x, a, group=g, **k), Conv(y, b, group=g, **k))"
    " => Conv(Concat(x, y, axis=1), Concat(a, b, axis=1), group=g, **k)"
    " if shape(a) == shape(b) and shape(x) == shape(y)",
    "taso-conv-mul": "Mul(Conv(x, w, **k), y) => Conv(x, w, **k) if rank(y) == 0",
}
OTHERS = {
    "concat-along-the-wrong-axis": "Concat(Relu(x), Relu(y), axis=1) => Relu(Concat(x, y, axis=0))"
    " if shape(x) == shape(y)",
    "inverse-instead-of-permutation": "Transpose(Transpose(x, perm=p), perm=q) => Transpose(x, perm=compose(q, p))",
    "square-weights-by-accident": "MatMul(x, w) => MatMul(x, Transpose(w, perm=[1, 0]))"
    " if rank(w) == 2 and dim(w, 0) == dim(w, 1)",
    "softmax-along-another-axis": "Softmax(Transpose(x, perm=p), axis=a) => Transpose(Softmax(x, axis=a), perm=p)",
    "mean-of-padding": "AveragePool(x, **k) => AveragePool(x, kernel_shape=k.kernel_shape, strides=k.strides,"
    " pads=k.pads, dilations=k.dilations, count_include_pad=1) if k.ceil_mode == 0",
    "bias-under-padding": "Conv(Add(x, c), w, b, **k) => Add(Conv(x, w, b, **k), "
    "Conv(Expand(c, shape=[1, dim(x, 1), dim(x, 2), dim(x, 3)]), w, b, **k)) if rank(x) == 4 and rank(c) == 0",
    "epsilon-forgotten": "BatchNormalization(x, g, b, m, v, epsilon=e) => BatchNormalization(x, g, b, m, v)",
    "pool-and-convolution-commute": "Conv(AveragePool(x, **k), w) => AveragePool(Conv(x, w), **k)",
    "not-exact [exact]": "Mul(x, Add(y, z)) => Add(Mul(x, y), Mul(x, z))",
    "only-for-floats [any]": "Mul(x, 0.5) => Div(x, 2)",
}
# Conditions without which a rule of the default set is false.
NEEDED = [
    ("conv-merge-groups", "g % 2 == 0"),
    ("conv-join-groups", "shape(a) == shape(b)"),
    ("conv-join-groups", "shape(x) == shape(y)"),
    ("conv-enlarge-merge", "dim(b, 2) - dim(a, 2) == q[0] - p[0] + q[2] - p[2]"),
    ("conv-fold-bias", "rank(b) <= rank(x)"),
    ("conv-fold-batch-norm-before", "p == [0] * len(p)"),
    ("conv-then-1x1", "prod(shape(b)[2:]) == 1"),
    ("conv-1x1-before-pool-biased", "k.count_include_pad == 0"),
    ("conv-add-identity", "dim(w, 2) == p[0] + p[2] + 1"),
    ("avg-pool-as-global", "s == shape(x)[2:]"),
    ("clip-then-relu", "b >= 0"),
    ("relu-of-max-pool", "max(k.dilations) == 1"),
    ("prelu-as-max", "value(s) <= 1"),
    ("relu-of-scaled", "value(c) >= 0"),
    ("transpose-as-reshape", "keeps_order(shape(x), p)"),
    ("slices-as-split", "n == dim(x, a)"),
    ("gather-of-layer-norm", "a < rank(x) - 1"),
    ("softmax-drop-shift", "size(c) == 1"),
    ("hard-swish-fuse", "dtype(x) != 'double'"),
    ("bias-split", "shape(p) == [s[0]]"),
]


@pytest.mark.parametrize("name", {**TASO, **OTHERS})
def test_false_rule_is_caught(name: str) -> None:
    (rule,) = parse_rules(f"{name}: {({**TASO, **OTHERS})[name]}")
    found = check_rule(rule, instances=20, draws=1)
    assert isinstance(found, Counterexample)
    assert rule.name in str(found)


@pytest.mark.parametrize(
    ("name", "condition"), NEEDED, ids=[f"{name}-without-{condition}" for name, condition in NEEDED]
)
def test_rule_without_one_of_its_conditions_is_caught(name: str, condition: str) -> None:
    rule = RULES[RULES.index(name)]
    kept = tuple(c for c in rule.conditions if unparse_expr(c) != condition)
    assert len(kept) == len(rule.conditions) - 1
    found = (check_rule(replace(rule, conditions=kept), instances=100, draws=1, seed=seed) for seed in range(12))
    assert any(isinstance(one, Counterexample) for one in found)

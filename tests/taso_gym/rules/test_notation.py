"""The notation: what is read, what is refused with which message, and that writing and reading are inverse."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matching_graphs import RULES

from taso_gym.errors import RuleError
from taso_gym.rules.files import package_sets
from taso_gym.rules.notation import parse_rules, unparse
from taso_gym.rules.rule import Absent, AllOutputs, Call, Constant, Expr, Output, Rest, Rule, Var


def one(line: str) -> Rule:
    (rule,) = parse_rules(line, "my.rules")
    return rule


def same(a: Rule, b: Rule) -> bool:
    return replace(a, text="", where="") == replace(b, text="", where="")


def test_a_line_becomes_a_rule() -> None:
    rule = one("merge [exact any]: Relu(Add(x, y))  => Add(Relu(x), y) if rank(x) == 2 and const(y)  # why")
    assert rule.name == "merge" and rule.numerics == "exact" and rule.any_type
    assert rule.lhs == (Call("Relu", (Call("Add", (Var("x"), Var("y"))),)),)
    assert rule.rhs == (Call("Add", (Call("Relu", (Var("x"),)), Var("y"))),)
    assert [c.kind for c in rule.conditions] == ["==", "call"]
    assert rule.where == "my.rules:1"


def test_tags_default_to_reassociating_floats() -> None:
    rule = one("r: Relu(x) => Relu(x)")
    assert rule.numerics == "reassociate" and not rule.any_type


def test_both_ways_gives_two_rules() -> None:
    there, back = parse_rules("r: Add(x, y) <=> Sub(x, Neg(y))")
    assert (there.name, back.name) == ("r", "r.reverse")
    assert (there.lhs, there.rhs) == (back.rhs, back.lhs)


def test_blank_lines_and_comments_are_skipped() -> None:
    assert [r.name for r in parse_rules("\n# a comment\na: Relu(x) => x\n\n  # another\nb: Neg(x) => x\n")] == [
        "a",
        "b",
    ]


def test_terms() -> None:
    rule = one(
        "r: *Split(Clip(x), axis=a, split=s) => Split(Concat(x, axis=a), axis=a, split=s)[1], *Split(x, **k)".replace(
            ", *Split(x, **k)", ""
        )
    )
    assert isinstance(rule.lhs[0], AllOutputs) and isinstance(rule.rhs[0], Output)
    (root,) = one("r: Conv(x, w, _) => Conv(x, w)").lhs
    assert isinstance(root, Call) and root.args == (Var("x"), Var("w"), Absent())
    (root,) = one("r: Concat(*xs, y, axis=1) => Concat(y, *xs, axis=1)").lhs
    assert isinstance(root, Call) and root.args == (Rest("xs"), Var("y"))
    (root,) = one("r: Concat(*Split(x, axis=a, split=s), axis=a) => x").lhs
    assert isinstance(root, Call) and isinstance(root.args[0], AllOutputs)


def test_a_name_that_an_attribute_binds_is_a_literal_on_the_right() -> None:
    (root,) = one("r: LeakyRelu(x, alpha=a) => Mul(x, a)").rhs
    assert isinstance(root, Call) and root.args[1] == Constant(Expr("name", "a"))


def test_a_named_term_stands_for_itself_wherever_its_name_does() -> None:
    line = "r: Softplus(x) => Concat((s := Split(Add(y := Exp(x), y), axis=1, split=[1, 1]))[1], Neg(y), s[0], axis=0)"
    split = "Split(Add(Exp(x), Exp(x)), axis=1, split=[1, 1])"
    assert same(one(line), one(f"r: Softplus(x) => Concat({split}[1], Neg(Exp(x)), {split}[0], axis=0)"))


def test_others_stand_for_what_all_operators_have() -> None:
    for rule in parse_rules("r: Relu(Conv(x, w, **k)) <=> ms.FusedConv(x, w, activation='Relu', **k)"):
        assert rule.lhs[0]
    with pytest.raises(RuleError, match=r"that \*\*k holds \(.*\), found 'activation_params'"):
        one("r: ms.FusedConv(x, w, **k) => Relu(Conv(x, w, **k)) if k.activation_params == 1")


WRONG = [
    ("Relu(x) => x", "expected `name: left => right`", 0),
    ("r: Relu(x) -> x", "expected `=>` or `<=>`", None),
    ("r: Relu(x) => Relu(x) => x", "expected one arrow, found a second", 22),
    ("r: => x", "expected a left side, found nothing", None),
    ("r: Relu(x) =>", "expected a right side, found nothing", None),
    ("r: Relu(x) => x if", "expected a condition, found nothing", None),
    ("r [exactly]: Relu(x) => x", "expected a tag (exact, reassociate, fast, any), found 'exactly'", 3),
    ("r: Relux(x) => x", "expected an operator of the table, found 'Relux' (did you mean Relu?)", 3),
    ("r: com.microsoft.Gelu(x) => x", "expected an operator of the table, found 'com.microsoft.Gelu'", 3),
    ("r: Relu(x, slope=1) => x", "expected an attribute of Relu (none), found 'slope'", 11),
    ("r: Transpose(x, perms=p) => x", "expected an attribute of Transpose (perm), found 'perms'", 16),
    ("r: Relu(x, y) => x", "expected 1 operands of Relu, found 2", 3),
    ("r: MatMul(x) => x", "expected 2 operands of MatMul, found 1", 3),
    ("r: MatMul(x, _) => x", "expected the first 2 operands of MatMul, found an absent one", 3),
    ("r: Relu(x) => y", "expected a variable that the left side binds, found 'y'", 14),
    ("r: Relu(x) => Concat(*xs, axis=0)", "expected *xs on the left side, found none", 21),
    ("r: Concat(*xs, axis=0) => Relu(xs)", "expected *xs, found 'xs' without the star", 31),
    ("r: Concat(*xs, *ys, axis=0) => Concat(*xs, axis=0)", "expected at most one starred operand", 3),
    ("r: Relu(x) => Transpose(x, perm=p)", "expected an attribute variable of the left side, found 'p'", 32),
    ("r: Relu(x) => Transpose(x, perm=x)", "expected a number or list, found the tensor 'x'", 32),
    ("r: Relu(x) => Conv(x, x, **k)", "expected **name with a name that the left side binds, found **k", 27),
    ("r: Conv(x, w, **k) => x if k == 1", "expected one attribute of 'k' (k.group), found all of them", 27),
    ("r: Conv(x, w, **k) => x if j.group == 1", "expected **j on the left side, found none", 27),
    ("r: Transpose(x, perm=x) => x", "expected a name that stands for one thing, found 'x'", 21),
    ("r: Transpose(x, perm=opset) => x", "expected a name that stands for one thing, found 'opset'", 21),
    ("r: Relu(x), Relu(x) => x", "expected 2 outputs as on the left side, found 1", 23),
    ("r: x => Relu(x)", "expected an operator on the left side, found 'x'", 3),
    ("r: Relu(x) => 1", "expected a tensor with an element type, found '1'", 14),
    ("r: Relu(x) => x if rank(y) == 1", "expected a tensor variable of the left side, found 'y'", 24),
    ("r: Relu(x) => x if ranks(x) == 1", "expected a function (shape, rank", 19),
    ("r: Relu(x) => x if rank(x, 1) == 1", "expected 1 arguments of rank, found 2", 19),
    ("r: Relu(x) => x if dim(x, axis=1) == 1", "expected positional arguments of dim, found a keyword", 19),
    ("r: Concat(*xs, axis=0) => Concat(*xs, axis=0) if rank(xs) == 1", "expected one tensor, found any number", 54),
    ("r: Relu(x) => x if rank(x) == 1, 2", "expected one condition (join several by `and`), found a list", 19),
    ("r: Relu(x) => x if __import__('os')", "expected a function", 19),
    ("r: Relu(x) => x if (lambda: 1)()", "expected a function", 19),
    ("r: Relu(x) => x if [i for i in shape(x)]", "expected an expression, found '[i for i in shape(x)]'", 19),
    ("r: Relu(x) => x if x.__class__", "expected **x on the left side, found none", 19),
    ("r: Relu(x) => x if rank(x) is 1", "expected an expression, found 'rank(x) is 1'", 19),
    ("r: Relu(x) => x if shape(x)[::2] == [1]", "expected an expression, found 'shape(x)[::2]'", 19),
    ("r: Relu(x) => Mul(x := Neg(x), x)", "expected a new name for a term, found 'x' in a second meaning", 18),
    ("r: Relu(x) => Mul(y := Neg(x), y := x)", "expected a new name for a term, found 'y' in a second meaning", 31),
    ("r: Relu(x) => Mul(dim := Neg(x), x)", "expected a new name for a term, found 'dim' in a second meaning", 18),
    ("r: Relu(x) => Mul(y, y := Neg(x))", "expected a variable that the left side binds, found 'y'", 18),
    ("r: Relu(y := x) => x", "expected a tensor, found '(y := x)'", 8),
    (f"r: Relu(x) => x if {'+'.join('1' * 450)} == 450", "expected an expression of at most 100 levels", 18),
    ("r: Relu(x => x", "expected", None),
    ("r: Relu(x)) => x", "expected", None),
    ("r: Relu(x y) => x", "expected an expression", None),
    ("r: Relu(x), Relu(y) => Relu(x), Relu(y)", "expected a left side whose operators are connected", None),
    ("r: Mul(x, rank(x)) => x", "expected a number as a literal on the left side", 10),
    (f"r: Mul(x, {10**400}) => x", "expected a number as a literal on the left side, found one that no float", 10),
    ("r: Mul(x, ((10**64)**64)**64) => x", "expected a number as a literal on the left side", 10),
    ("r: Relu(Conv(x, w, **k, **j)) => Relu(Conv(x, w, **k))", "expected one ** in Conv, found several", 26),
]


@pytest.mark.parametrize(("line", "message", "column"), WRONG, ids=[line[:100] for line, _, _ in WRONG])
def test_a_fault_is_named_with_its_place(line: str, message: str, column: int | None) -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules(f"ok: Relu(x) => x\n{line}", "my.rules")
    text = str(caught.value)
    assert text.startswith("my.rules:2: ") and message in text and f"\n  {line.strip()}" in text
    if column is not None:
        assert text.splitlines()[-1] == "  " + " " * column + "^"


def test_two_rules_of_one_name_are_refused() -> None:
    with pytest.raises(RuleError, match="found a second 'r'"):
        parse_rules("r: Relu(x) => x\nr: Neg(x) => x")


def test_a_caret_counts_characters() -> None:
    with pytest.raises(RuleError) as caught:
        parse_rules("r: Gelu(x, approximate='äöü') => y")
    assert str(caught.value).splitlines()[-1].index("^") - 2 == len("r: Gelu(x, approximate='äöü') => ")


@pytest.mark.parametrize("text", [RULES, *(path.read_text(encoding="utf-8") for path in package_sets().values())])
def test_written_rules_are_read_back(text: str) -> None:
    for rule in parse_rules(text):
        assert same(one(unparse(rule)), rule), unparse(rule)


NUMBERS = st.integers(0, 9).map(lambda n: Expr("number", n)) | st.floats(0, 1e6).map(lambda n: Expr("number", n))
LEAVES = (
    NUMBERS
    | st.sampled_from(["opset", "p"]).map(lambda name: Expr("name", name))
    | st.sampled_from(["", "a b", "it's", "ä"]).map(lambda s: Expr("string", s))
    | st.just(Expr("none"))
    | st.just(Expr("call", "shape", (Expr("name", "x"),)))
)
BINARY = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"]


def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pair = st.tuples(inner, inner)
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return (
        st.builds(lambda kind, args: Expr(kind, None, args), st.sampled_from(BINARY), pair)
        | st.builds(lambda kind, args: Expr(kind, None, args), st.sampled_from(["and", "or"]), several)
        | st.builds(lambda kind, arg: Expr(kind, None, (arg,)), st.sampled_from(["-", "not"]), inner)
        | st.builds(lambda args: Expr("list", None, args), st.lists(inner, max_size=3).map(tuple))
        | st.builds(lambda args: Expr("[]", None, args), pair)
        | st.builds(lambda args: Expr("[:]", None, args), st.tuples(inner, inner, inner))
        | st.builds(lambda arg: Expr("call", "sqrt", (arg,)), inner)
    )


@given(st.recursive(LEAVES, grow, max_leaves=12))
def test_any_expression_is_read_back(expr: Expr) -> None:
    rule = one("r: Transpose(x, perm=p) => x")
    written = replace(rule, rhs=(Call("Transpose", (Var("x"),), (("perm", expr),)),))
    assert same(one(unparse(written)), written), unparse(written)

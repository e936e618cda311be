from pathlib import Path

import pytest

from taso_gym.errors import RuleError
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.taso_pb import read_file, rule_of, text_of
from taso_gym.rules.taso_wire import parse, serialize

DATA = Path(__file__).parents[2] / "data" / "taso"
SHIPPED = DATA / "graph_subst.pb"


@pytest.mark.parametrize("name", ["graph_subst.pb", "generated_depth_2.pb"])
def test_files_are_read_whole(name: str) -> None:
    data = (DATA / name).read_bytes()
    assert serialize(parse(data, name)) == data


def test_the_shipped_file_has_133_rules() -> None:
    assert len(read_file(SHIPPED)) == 133


def test_a_product_is_a_matmul() -> None:
    assert text_of(read_file(SHIPPED)[0]) == (
        "MatMul(MatMul(x1, x4), x5) => MatMul(x1, MatMul(x4, x5)) if rank(x5) == 2 and rank(x4) == 2 and rank(x1) == 2"
    )


def test_a_split_divides_where_the_concat_joined() -> None:
    assert "split=[dim(x4, 1), dim(x5, 1)]" in text_of(read_file(SHIPPED)[77])


def test_padding_and_activation_are_written_out() -> None:
    text = text_of(read_file(SHIPPED)[100])
    assert "Relu(Conv(x7, x10, pads=[1, 1, 1, 1]))" in text
    assert "dim(x10, 2) == 3" in text


def test_groups_are_one_or_what_the_channels_say() -> None:
    record = read_file(SHIPPED)[125]
    assert "group" not in text_of(record)
    assert "group=dim(x7, 1) // dim(x10, 1)" in text_of(record, explicit_groups=False)


def test_what_our_notation_cannot_say_has_a_reason() -> None:
    found = [rule_of(record, f"taso-{i}", "file") for i, record in enumerate(read_file(SHIPPED))]
    assert sum(isinstance(rule, Rule) for rule in found) == 127
    assert all(isinstance(rule, Rule) or "connected" in rule for rule in found)


def test_a_rule_set_holds_what_was_shown_of_it() -> None:
    rules = RuleSet.load(SHIPPED)
    assert len(rules) == 119 == len(rules.certificates)
    false_or_too_wide = {84, 99, 100, 116, 118, 130, 131, 132}
    assert not {rule.name for rule in rules} & {f"taso-{i}" for i in false_or_too_wide}


def test_a_file_of_which_nothing_was_shown_is_refused(tmp_path: Path) -> None:
    (tmp_path / "false.pb").write_bytes(serialize([read_file(SHIPPED)[99]]))
    with pytest.raises(RuleError, match=r"shown to hold, found none in .*false.pb: `taso-gen-subst import"):
        RuleSet.load(tmp_path / "false.pb")


@pytest.mark.parametrize("cut", [1, 2, 3, 50, 1000])
def test_cut_files_are_refused(cut: int, tmp_path: Path) -> None:
    file = tmp_path / "cut.pb"
    file.write_bytes(SHIPPED.read_bytes()[:-cut])
    with pytest.raises(RuleError, match=r"cut\.pb: expected rules in TASO's format"):
        read_file(file)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x0a", b"\xff" * 40, b"\x0a\x02\x0a\x00", b"\x08\x01", b"name: rule"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(RuleError, match="expected rules in TASO's format"):
        parse(data, "file")


def test_damaged_bytes_raise_no_other_error() -> None:
    whole = bytearray(SHIPPED.read_bytes()[:400])
    for place in range(0, 400, 7):
        data = bytearray(whole)
        data[place] ^= 0x5B
        try:
            records = parse(bytes(data), "file")
        except RuleError:
            continue
        for record in records:
            rule_of(record, "r", "file")


@pytest.mark.parametrize("field", ["parameters", "inputs"])
def test_an_operator_that_lacks_something_is_refused(field: str) -> None:
    """In a file that is of the form otherwise."""
    taso = read_file(SHIPPED)[99]
    emptied = [op._replace(**{field: type(getattr(op, field))()}) for op in taso.source]
    with pytest.raises(RuleError, match=r"f.pb: expected a rule of TASO as record r, found a damaged one"):
        rule_of(taso._replace(source=tuple(emptied)), "r", "f.pb")

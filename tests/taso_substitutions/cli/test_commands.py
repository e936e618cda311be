import re
from pathlib import Path

import pytest
from rule_discovery import run

from taso_gym.errors import EquivalenceError
from taso_gym.rules.rule import Rule
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.taso_pb import read_file
from taso_substitutions.cli import interop
from taso_substitutions.verify import certify
from taso_substitutions.verify.certificates import Row, sidecar_of

TRUE = "assoc: MatMul(x, MatMul(y, z)) => MatMul(MatMul(x, y), z) if rank(x) == 2 and rank(y) == 2 and rank(z) == 2\n"
FALSE = "wrong: Relu(Add(x, y)) => Add(Relu(x), Relu(y))\n"
LACKING = "lacks: Add(MatMul(x, a), MatMul(x, b)) => MatMul(x, Sub(a, b))\n"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.rules"
    file.write_text(TRUE)
    return file


def test_recheck_replays_certificates(mine: Path) -> None:
    certify(mine)
    assert run("recheck", mine) == 0


def test_recheck_wants_certificates(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("recheck", mine) == 2
    assert "expected certificates" in capsys.readouterr().err


def test_recheck_writes_certificates(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("recheck", mine, "--write") == 0
    assert "1 proved of 1 rules" in capsys.readouterr().out
    assert run("recheck", mine) == 0


def test_recheck_writes_anew_what_is_damaged(mine: Path) -> None:
    sidecar_of(mine).write_text("{\n")
    assert run("recheck", mine) == 2
    assert run("recheck", mine, "--write") == 0
    assert run("recheck", mine) == 0


def test_recheck_names_the_rule_whose_certificate_has_no_instances(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    certify(mine)
    sidecar = sidecar_of(mine)
    sidecar.write_text(re.sub('"instances": [0-9]+', '"instances": 0', sidecar.read_text()))
    assert run("recheck", mine) == 2
    assert "assoc: expected a certificate with a test" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("rule", "scope"),
    [
        ("sum: Add(x, y) => Add(y, x)", "proof for all sizes, from"),
        (
            "quot: Relu(x) => Relu(Div(Mul(x, 100 // dim(x, 0)), 100 // dim(x, 0))) if rank(x) > 0",
            "proof for all sizes but numbers that instances have (x.0), from",
        ),
        (
            "cnt: Neg(Neg(Concat(*xs, axis=a))) => Mul(Concat(*xs, axis=a), max(1, count(xs) - 2))",
            "proof for all sizes but numbers that instances have (count(xs)), from",
        ),
        ("pool: MaxPool(Relu(x), **k) => Relu(MaxPool(x, **k)) if max(k.dilations) == 1", "proof of some instances"),
    ],
)
def test_explain_says_what_a_proof_is_for(rule: str, scope: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", rule) == 0
    assert scope in capsys.readouterr().out


def test_recheck_writes_nothing_for_a_false_rule(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text(TRUE + FALSE)
    assert run("recheck", mine, "--write") == 2
    assert "wrong is false" in capsys.readouterr().err
    assert not sidecar_of(mine).exists()


def test_recheck_names_all_false_rules_of_all_files(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = mine.with_name("other.rules")
    other.write_text(FALSE.replace("wrong", "false") + FALSE)
    assert run("recheck", mine, other, "--write", "--jobs", 1) == 2
    printed = capsys.readouterr()
    assert "1 proved of 1 rules" in printed.out
    assert "wrong is false" in printed.err
    assert "false is false" in printed.err


def test_recheck_in_processes_writes_the_same_bytes(mine: Path) -> None:
    mine.write_text(TRUE + "f: Neg(Neg(x)) => x\n")
    written = [(run("recheck", mine, "--write", "--jobs", jobs), sidecar_of(mine).read_bytes()) for jobs in (1, 2)]
    assert written[0] == written[1]
    assert written[0][0] == 0


def test_recheck_takes_sets_by_name_and_says_what_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("recheck", "cse", "--jobs", 1) == 0
    assert "of CPU time" in capsys.readouterr().out


def test_recheck_of_no_such_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("recheck", "nothing") == 2
    assert "expected a rule set" in capsys.readouterr().err


def test_recheck_sees_a_rule_that_was_changed(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certify(mine)
    mine.write_text(TRUE.replace("=> MatMul(MatMul(x, y), z)", "=> MatMul(x, MatMul(y, z))"))
    assert run("recheck", mine) == 2
    assert "assoc" in capsys.readouterr().err


def test_import_audits_rules(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text(TRUE + FALSE + LACKING)
    assert run("import", mine, "--jobs", 1) == 0
    printed = capsys.readouterr().out
    assert "wrong: refuted" in printed
    assert "lacks: refuted" in printed
    assert "1 proved, 2 refuted of 3" in printed


def test_import_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", "rules.csv") == 2
    assert "expected a rule file (.rules, .pb, .txt), found 'rules.csv'" in capsys.readouterr().err


def test_import_writes_what_holds(mine: Path, tmp_path: Path) -> None:
    mine.write_text(TRUE + FALSE)
    target = tmp_path / "held.rules"
    assert run("import", mine, "-o", target, "--jobs", 1) == 0
    assert target.read_text() == TRUE
    assert run("recheck", target) == 0
    assert run("import", mine, "-o", target, "--jobs", 1) == 2


def test_import_reads_tensat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rules.txt"
    file.write_text("matmul(matmul(input_1,input_4),input_5)==matmul(input_1,matmul(input_4,input_5))\n")
    assert run("import", file, "--jobs", 1) == 0
    assert "1 proved of 1" in capsys.readouterr().out


def test_export_can_be_read_again(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "mine.pb"
    assert run("export", mine, target) == 0
    assert capsys.readouterr().out == f"1 of 1 rules are in {target}\n"
    assert len(read_file(target)) == 1
    assert run("import", target, "--jobs", 1) == 0
    assert run("export", mine, target) == 2


@pytest.mark.parametrize("command", ["recheck", "import"])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("rules.rules", b"no rule"),
        ("rules.rules", b"r: Relu(x) => __import__('os')"),
        ("rules.rules", b"\xff\xfe"),
        ("rules.pb", b"\x0a\xff"),
        ("rules.pb", b""),
        ("rules.csv", b""),
    ],
)
def test_damaged_files(
    command: str, name: str, data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_bytes(data)
    assert run(command, file) == 2
    assert "error: " in capsys.readouterr().err


def test_export_says_that_rules_are_missing(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine.write_text(TRUE + "e: Exp(Neg(x)) => Reciprocal(Exp(x))\n")
    assert run("export", mine, tmp_path / "mine.pb") == 0
    assert capsys.readouterr().out.endswith("mine.pb; the others say what the format can't\n")


def test_explain_draws_and_proves(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "assoc", "--source", mine) == 0
    printed = capsys.readouterr().out
    assert "%1 = MatMul(y, z)" in printed
    assert "proof for all sizes" in printed


def test_explain_states_the_axioms_that_were_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "exp [fast]: Mul(Exp(x), Exp(y)) => Exp(Add(x, y))") == 0
    assert "uses exp-sum: exp(a + b) = exp(a) exp(b)" in capsys.readouterr().out


def test_explain_shows_a_counterexample(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", FALSE.strip()) == 0
    assert "wrong is false" in capsys.readouterr().out


def test_explain_wants_a_name_of_the_set(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("explain", "other", "--source", mine) == 2
    assert "expected a rule of the set" in capsys.readouterr().err


def test_stats_count(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stats", mine) == 0
    assert "with MatMul" in capsys.readouterr().out


def test_stats_show_the_stages_of_a_generation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("stats", "basis") == 0
    printed = capsys.readouterr().out
    for stage in ("graphs", "raw", "modulo renaming", "common subgraph", "most general", "statements"):
        assert f"generation: {stage}" in printed


def test_import_checks_its_target_first(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Proofs may take an hour."""
    assert run("import", mine, "-o", tmp_path / "nowhere" / "held.rules") == 2
    said = capsys.readouterr()
    assert "expected a folder to write held.rules into" in said.err and "proved" not in said.out


def test_import_replaces_no_certificates(mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "held.certificates.jsonl").write_text("of others\n")
    assert run("import", mine, "-o", tmp_path / "held.rules", "--jobs", 1) == 2
    assert f"expected no file at {tmp_path}/held.certificates.jsonl, found one" in capsys.readouterr().err
    assert not (tmp_path / "held.rules").exists()
    assert run("import", mine, "-o", tmp_path / "held.rules", "--jobs", 1, "--force") == 0


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_is_read_is_never_replaced(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], force: list[str]
) -> None:
    """A draft holds what wasn't shown yet, and comments."""
    exported, link = tmp_path / "mine.pb", tmp_path / "link.rules"
    assert run("export", mine, exported) == 0
    link.symlink_to(mine)
    before = mine.read_bytes(), exported.read_bytes()
    for output in (mine, link):
        assert run("import", mine, "-o", output, "--jobs", 1, *force) == 2
        expected = f"expected another file to write than {output}, which is to be imported"
        assert expected in capsys.readouterr().err
    assert run("export", exported, exported, *force) == 2
    assert f"expected another file to write than {exported}, which is to be exported" in capsys.readouterr().err
    assert (mine.read_bytes(), exported.read_bytes()) == before


def test_a_wrong_suffix_and_a_file_that_is_there_are_two_faults(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, suffix, option in (("import", ".rules", ["-o"]), ("export", ".pb", [])):
        new, there = tmp_path / "new.txt", tmp_path / f"there{suffix}"
        there.touch()
        assert run(command, mine, *option, new) == 2
        assert f"expected the name of a {suffix} file to write, found {new}\n" in capsys.readouterr().err
        assert run(command, mine, *option, there) == 2
        assert f"expected no file at {there}, found one: --force replaces it" in capsys.readouterr().err


def test_import_leaves_out_what_its_certificate_refutes(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules besides are written."""
    real, held = interop.certificates, tmp_path / "held.rules"

    def refuting(rules: list[Rule]) -> list[Row]:
        if rules[0].name == "fused":
            raise EquivalenceError("a counterexample")
        return real(rules)

    monkeypatch.setattr(interop, "certificates", refuting)
    mine.write_text("fused: Relu(Relu(x)) => Relu(x)\nkept: Neg(Neg(x)) => x\n")
    assert run("import", mine, "-o", held, "--jobs", 1) == 0
    assert "fused: left out, as its certificate refutes it: a counterexample" in capsys.readouterr().out
    assert [rule.name for rule in RuleSet.load(held)] == ["kept"]


def test_options_of_the_command_itself_are_not_those_of_generate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))  # there may be none above us
    assert run("--show-completion") == 0
    assert "taso" in capsys.readouterr().out.lower()

"""What discovering substitutions takes, beside TASO's figures.

    python benchmarks/generate.py [--taso FOLDER] [--ops 4] [--jobs 2] [--only taso,covers,all,judge,sound,mutants]

TASO's rule files are those of its repository (graph_subst.pb), in FOLDER. Times are CPU times of all processes, which
other work on the machine disturbs least, and wall times; "loops" is CPU time in units of a calibration loop, a million
additions in Python, to be compared between machines. Memory is the peak of the largest process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.soundness import mutate, sound

from taso_gym.rules.collector import seldom
from taso_gym.rules.ruleset import RuleSet
from taso_gym.rules.taso_pb import read_file
from taso_substitutions.enumeration.fragments import chosen_fragments
from taso_substitutions.generation.search import Search
from taso_substitutions.interop.judge import TasoWork, as_rules, judge_taso

PUBLISHED = {
    "taso": "TASO: 75-92 s, 7.1 GB, 619 rules, 550 distinct, at least 11 false",
    "all": "TASO: not feasible (about 2 TB)",
    "judge": "TASO: hangs on the false ones; 342 s with today's z3",
}
FALSE = ("refuted", "undecided")
COMMAND = Path(sys.executable).with_name("taso-gen-subst")


def calibration_s() -> float:
    """Least CPU time of a million additions."""
    times = []
    for _ in range(5):
        begin, total = time.process_time(), 0
        for i in range(1_000_000):
            total += i
        times.append(time.process_time() - begin)
    return min(times)


def measured(*arguments: object) -> tuple[str, dict[str, float]]:
    """Run the command; return what it printed, and what it took."""
    command, begin = [COMMAND, *map(str, arguments)], time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    with process.stdout as said:
        printed = said.read()
    _, status, used = os.wait4(process.pid, 0)  # of it and its workers; no less memory than this process has
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    took = {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.perf_counter() - begin}
    return printed, {**took, "peak_mib": used.ru_maxrss / 1024}


def show(what: str, took: dict[str, float], printed: str, loop: float) -> None:
    print(f"\n{what}\n  {PUBLISHED[what]}")
    print("  ours: " + ", ".join(f"{k} {v:.0f}" for k, v in took.items()) + f", loops {took['cpu_s'] / loop:.0f}")
    print("  " + "\n  ".join(printed.strip().splitlines()[-12:]))


def generation(what: str, folder: Path, loop: float, ops: int, jobs: int) -> None:
    names = "taso" if what == "taso" else "all"
    settings = ["--ops", ops, "--fragments", names, "--jobs", jobs, "-o", folder / what]
    printed, took = measured("generate", *settings, *(["--most", 0, "--no-certificates"] if what == "taso" else []))
    show(what, took, printed, loop)
    for name in ("full", "basis"):
        rules = RuleSet.load(folder / what / f"{name}.rules", numerics="fast")
        print(f"  {name}: {len(rules)} rules")


def covers(folder: Path, loop: float) -> None:
    """Search TASO's operators and inputs, and look which of TASO's true rules follow from what is found."""
    begin = time.process_time()
    with seldom():
        search = Search(chosen_fragments("taso", (4, 4, 4, 4))[0], 3)
        found = search.run()
    took = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    said = f"{len(found.statements)} statements, {len(found.exceptions)} exceptions"
    print(f"\ncovers: cpu_s {took:.1f}, loops {took / loop:.0f}, peak_mib {peak:.0f}, {said}", flush=True)
    for file in sorted(folder.glob("*.pb")):
        records = [TasoWork(record, number, file.name) for number, record in enumerate(read_file(file))]
        true = [(w, v) for w, v in zip(records, map(judge_taso, records), strict=True) if v.outcome not in FALSE]
        missing = [w.number for w, v in true if not all(map(search.covers, [v.rule] if v.rule else as_rules(w)))]
        print(
            f"  {file.name}: {len(records)} rules, {len(true)} true, derived {len(true) - len(missing)}, "
            f"not derived {missing or 'none'}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--taso", type=Path)
    parser.add_argument("--ops", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="taso,all,judge")
    parser.add_argument("--tests", type=int, default=1_000_000)
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--results", type=Path, default=Path("out/soundness"), help="a run of the same code goes on")
    options = parser.parse_args()
    loop = calibration_s()
    print(json.dumps({"calibration_s": round(loop, 4)}))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "taso" in options.only.split(","):
            generation("taso", folder, loop, min(3, options.ops), options.jobs)
        if "all" in options.only.split(","):
            generation("all", folder, loop, options.ops, options.jobs)
    if "covers" in options.only.split(",") and options.taso:
        covers(options.taso, loop)
    if "sound" in options.only.split(","):
        sound(options.tests, options.jobs, options.results / "sound")
    if "mutants" in options.only.split(","):
        mutate(options.mutants, options.jobs, options.results / "mutants")
    if "judge" in options.only.split(",") and options.taso:
        for file in sorted(options.taso.glob("*.pb")):
            printed, took = measured("import", file, "--jobs", options.jobs)
            counts, spent = printed.strip().splitlines()[-2:]
            show("judge", took | {"cpu_s": float(spent.split()[2])}, counts, loop)


if __name__ == "__main__":
    main()

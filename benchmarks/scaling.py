"""How a step grows with the graph, what many live clones take, and whether a long run takes more and more.

    python benchmarks/scaling.py [--longest 100000] [--clones 10000] [--run 20000]

A step's Python work depends on the edit; what depends on the graph are shallow copies of its dictionaries (in C) and of
the observation's arrays. Chains are stepped at their beginning by two rules that undo each other, so all steps are of
one kind. Memory is that of random legal walks in episodes of 60 steps. Times are CPU times of this thread; "loops" is a
time in units of a calibration loop.
"""

import argparse
import gc
import resource
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
from step import EPISODE, calibration_ms

import taso_gym
from taso_gym.builder import GraphBuilder
from taso_gym.env import TasoGraphEnv
from taso_gym.graph import Graph
from taso_gym.rules.notation import parse_rules
from taso_gym.rules.ruleset import RuleSet
from taso_gym.tensor import TensorType

gym.register_envs(taso_gym)
RULES = "mul-relu: Mul(Relu(x), y) <=> Mul(y, Relu(Abs(Relu(x))))"
FILL = ("Tanh", "Sigmoid", "Exp", "Softplus")


def chain(nodes: int) -> Graph:
    """A chain of operators; only its first block matches a rule, so candidates don't grow with it."""
    builder = GraphBuilder({"": 20})
    x = y = builder.input("x", TensorType("float", (8, 8)))
    y = builder.add("Mul", builder.add("Relu", y), x)
    for number in range(nodes - 2):
        y = builder.add(FILL[number % len(FILL)], y)
    builder.output("y", y)
    return builder.build()


def resident_mib() -> float:
    """Memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def median_us(times: list[int]) -> float:
    """Median of nanoseconds in microseconds."""
    return float(np.median(times)) / 1e3


def step_parts(nodes: int, steps: int) -> list[float]:
    """Median CPU microseconds of copying a graph's dictionaries, of rewriting and rematching, of an observation."""
    env = TasoGraphEnv(chain(nodes), rules=RuleSet(parse_rules(RULES)), max_matches=64, location_counts=True)
    env.reset()
    gc.collect()
    gc.freeze()
    columns: list[list[int]] = [[], [], [], []]
    clock = time.thread_time_ns
    for _ in range(steps):
        episode = env.episode
        graph, rows = episode.state.graph, episode.state.matches
        match = next(row[0] for row in rows if row)
        marks = [clock()]
        graph.nodes.copy(), graph.uses.copy()
        marks.append(clock())
        episode.state = episode.state.apply(match)
        marks.append(clock())
        episode.observer.advance(episode.state)
        marks.append(clock())
        env.observe()
        marks.append(clock())
        for column, spent in zip(columns, np.diff(marks), strict=True):
            column.append(int(spent))
    gc.unfreeze()
    return [median_us(column) for column in columns]


def report_chains(longest: int, steps: int, unit_ms: float) -> None:
    """Print a row for each length."""
    print(
        f"{'nodes':>8}{'apply µs':>10}{'of it copies':>14}{'ns a node':>11}{'the rest':>10}{'loops':>7}{'patch':>8}"
        f"{'observe':>9}"
    )
    nodes = 100
    while nodes <= longest:
        copies, apply, patch, observe = step_parts(nodes, steps)
        rest = apply - copies
        print(
            f"{nodes:8}{apply:10.1f}{copies:14.1f}{1e3 * copies / nodes:11.1f}{rest:10.1f}{rest / 1e3 / unit_ms:7.2f}"
            f"{patch:8.1f}{observe:9.1f}",
            flush=True,
        )
        nodes *= 10


def report_clones(network: str, count: int) -> None:
    """Print the memory of environments that are all at different points."""
    env = gym.make(f"TasoGraph-{network}-v0").unwrapped
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    for number in range(500):  # what is made once: plans, signatures, feature rows
        if env.step(env.sample_valid(rng))[2:4] != (False, False) or number % EPISODE == 0:
            env.reset()
    env.reset()
    gc.collect()
    before, clones = resident_mib(), []
    for number in range(count):
        if env.step(env.sample_valid(rng))[2:4] != (False, False) or number % EPISODE == 0:
            env.reset()
        clones.append(env.clone())
    grown = resident_mib() - before
    print(
        f"{count} live clones of {network}, each at a state of its own: {grown * 2**20 / 1e9:.2f} GB, "
        f"{1024 * grown / count:.0f} KiB each"
    )


def report_run(network: str, steps: int) -> None:
    """Print the memory along a run, as it goes on."""
    env = gym.make(f"TasoGraph-{network}-v0", location_counts=True)
    env.reset(seed=0)
    rng, begin = np.random.default_rng(0), time.process_time()
    print(f"{steps} steps of {network}; MiB after each tenth:", end="", flush=True)
    for number in range(1, steps + 1):
        _, _, terminated, truncated, _ = env.step(env.unwrapped.sample_valid(rng))
        if terminated or truncated or number % EPISODE == 0:
            env.reset()
        if number % max(steps // 10, 1) == 0:
            gc.collect()
            print(f" {resident_mib():.0f}", end="", flush=True)
    print(f"; {steps / (time.process_time() - begin):.0f} steps a second of CPU time")


def main() -> None:
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--longest", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--clones", type=int, default=10_000)
    parser.add_argument("--run", type=int, default=20_000)
    parser.add_argument("--network", default="BERT")
    options = parser.parse_args()
    unit_ms = calibration_ms()
    print(f"calibration loop {unit_ms:.3f} ms, Python {sys.version.split()[0]}")
    report_chains(options.longest, options.steps, unit_ms)
    if options.run:
        report_run(options.network, options.run)  # first: what the clones leave free would hide growth
    if options.clones:
        report_clones(options.network, options.clones)


if __name__ == "__main__":
    main()

"""How long a step of the environment takes, and what it is made of.

    python benchmarks/step.py [network ...] [--steps 3000]

A random legal walk over the default rules in episodes of 60 steps, through `gymnasium.make` and its wrappers: matching,
rewriting, cost, hash, observation, masks, reward, info. Times are CPU times of this process (median, 99th percentile),
which other processes on the machine disturb least; wall times stand beside them. All steps count, from the first one
on; types and templates that turn up for the first time make a step slower, mostly an early one, so "later" is the 99th
percentile without the first 300 steps. Objects that stay are kept from the garbage collector (`gc.freeze()` after the
first reset), as a long training should do: its full collections otherwise walk over all rules and graphs. "loops" is
the median in units of a calibration loop, 10,000 additions in Python, to be compared between machines.
"""

import argparse
import gc
import subprocess
import sys
import time
from collections.abc import Callable

import gymnasium as gym
import numpy as np

import taso_gym  # noqa: F401 - registers the environments
from taso_gym.observation import size_bytes
from taso_gym.registration import env_id
from taso_gym.vector import TasoGraphVectorEnv

NETWORKS = ["SqueezeNet1.1", "ResNet18", "ResNet50", "InceptionV3", "BERT", "NasNetA"]
EPISODE = 60
FIRST = 300
PUBLISHED = {"a real step (850 ms, ResNet-50)": 850.0, "a world-model step (10 ms)": 10.0}
HEAD = (
    f"{'':14}{'nodes':>6}{'rules':>6}{'cand.':>6}{'KiB':>5} |{'CPU ms p50':>11}{'p99':>7}{'later':>7}{'loops':>7} |"
    f"{'wall p50':>9}{'p99':>7} |{'rewrite µs':>11}{'patch':>6}{'arrays':>7}{'info':>5}{'clone':>6} |"
    f"{'make+reset CPU':>15}{'wall':>7}"
)


def calibration_ms() -> float:
    """Least CPU time of 10,000 additions, in milliseconds."""

    def loop() -> None:
        total = 0
        for i in range(10_000):
            total += i

    return min(cpu_ms(loop) for _ in range(50))


def cpu_ms(call: Callable[[], object]) -> float:
    """CPU time of a call in milliseconds."""
    begin = time.process_time_ns()
    call()
    return (time.process_time_ns() - begin) / 1e6


def in_fresh_process(before: str, timed: str) -> tuple[float, float]:
    """Least CPU and wall time in seconds that ``timed`` takes in three new interpreters."""
    read = "(time.process_time(), time.perf_counter())"
    code = f"import time; {before}; t = {read}; {timed}; u = {read}; print(u[0] - t[0], u[1] - t[1])"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(3)]
    cpu, wall = zip(*(map(float, run.stdout.split()) for run in runs), strict=True)
    return min(cpu), min(wall)


def step_times(network: str, steps: int) -> tuple[np.ndarray, np.ndarray, gym.Env]:
    """CPU and wall times in milliseconds of each step through all wrappers, from the first one on."""
    env = gym.make(env_id(network))
    game, rng = env.unwrapped, np.random.default_rng(0)
    env.reset(seed=0)
    gc.collect()
    gc.freeze()
    cpu, wall = np.empty((2, steps))
    for i in range(steps):
        action = game.sample_valid(rng)
        begin, begin_cpu = time.perf_counter_ns(), time.process_time_ns()
        _, _, terminated, truncated, _ = env.step(action)
        cpu[i], wall[i] = time.process_time_ns() - begin_cpu, time.perf_counter_ns() - begin
        if terminated or truncated or (i + 1) % EPISODE == 0:
            env.reset()
    return cpu / 1e6, wall / 1e6, env


def part_times(env: gym.Env, steps: int) -> list[float]:
    """Median CPU time in microseconds of rewriting, patching the observer, making arrays, info, and of a clone."""
    game, rng = env.unwrapped, np.random.default_rng(1)
    times: list[np.ndarray] = []
    game.begin()
    for i in range(steps):
        episode = game.episode
        xfer, location = game.sample_valid(rng)
        marks = [time.process_time_ns()]
        episode.state = episode.state.apply(episode.state.matches[xfer][location])
        marks.append(time.process_time_ns())
        episode.observer.advance(episode.state)
        for part in (game.observe, episode.info, game.clone):
            marks.append(time.process_time_ns())
            part()
        marks.append(time.process_time_ns())
        times.append(np.diff(marks))
        if not episode.observer.total or (i + 1) % EPISODE == 0:
            game.begin()
    return (np.median(times, 0) / 1e3).tolist()


def vector_rate(network: str, count: int, steps: int) -> float:
    """Steps per second of CPU time of a batch of environments."""
    env = TasoGraphVectorEnv(count, model=network, location_counts=True)
    env.reset(seed=0)
    rng, rounds, spent = np.random.default_rng(0), max(1, steps // count), 0.0
    for _ in range(rounds):
        actions = np.stack([one.sample_valid(rng) for one in env.envs])
        spent += cpu_ms(lambda actions=actions: env.step(actions))
    return 1000 * rounds * count / spent


def report(network: str, steps: int, unit_ms: float) -> None:
    """Print the row of a network."""
    cpu, wall, env = step_times(network, steps)
    rewrite, patch, arrays, info, clone = part_times(env, steps // 6)
    game = env.unwrapped
    game.begin()
    made = in_fresh_process("import gymnasium, taso_gym", f"gymnasium.make({env_id(network)!r}).reset()")
    sizes = len(game.state.graph), len(game.rules), game.episode.observer.total
    p50, p99 = np.quantile(cpu, [0.5, 0.99])
    print(
        f"{network:14}{sizes[0]:6}{sizes[1]:6}{sizes[2]:6}{size_bytes(env.observation_space) / 1024:5.0f} |{p50:11.3f}"
        f"{p99:7.2f}{np.quantile(cpu[min(FIRST, len(cpu) // 2) :], 0.99):7.2f}{p50 / unit_ms:7.2f} |"
        f"{np.median(wall):9.3f}{np.quantile(wall, 0.99):7.2f} |{rewrite:11.0f}"
        f"{patch:6.0f}{arrays:7.0f}{info:5.0f}{clone:6.0f} |{made[0]:13.2f} s{made[1]:5.2f} s",
        flush=True,
    )
    if network == "ResNet50":
        print(f"{'':14}" + ", ".join(f"{ms / p50:.0f} times as fast as {name}" for name, ms in PUBLISHED.items()))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--steps", type=int, default=3000)
    options = parser.parse_args()
    unit_ms, imported = calibration_ms(), in_fresh_process("pass", "import taso_gym")
    print(f"calibration loop {unit_ms:.3f} ms · import taso_gym {imported[0]:.2f} s CPU, {imported[1]:.2f} s wall")
    print(HEAD, flush=True)
    for network in options.networks:
        report(network, options.steps, unit_ms)
    print("\nSteps per second of CPU time in a TasoGraphVectorEnv of 1, 8, 64")
    for network in options.networks:
        rates = [vector_rate(network, count, options.steps // 3) for count in (1, 8, 64)]
        print(f"{network:14}{''.join(f'{rate:8.0f}' for rate in rates)}", flush=True)


if __name__ == "__main__":
    main()

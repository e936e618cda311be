"""Planning with a learned model against planning with the true one, at equal true steps and at equal CPU time.

    python benchmarks/planning.py [network] [--seeds 0 1 2 3 4] [--steps 240] [--plot FILE] [--folder FOLDER]

A true step is one rewrite applied, in an episode or inside a plan: the simulator is a black box that says what a step
leads to and what it saves. All plan by the same beam search from the present state (`taso_agents.dreams.planning`),
carry out part of the plan and plan again, in episodes from the start graph:

* true WxB: a beam of W branches and B actions from each, all of them true steps;
* mdn, discrete: a wide beam in a world model. The first steps are random episodes; the model is fitted to all episodes
  after 1/8, 1/4 and 1/2 of the steps, and its planned episodes are steps and data too, a quarter of them random;
* random: random episodes;
* greedy: taso_gym's greedy search, which is told by how much each candidate changes the cost without applying it: no
  method of the black box, but what the incremental engine gives for nothing.

A curve is the best cost of any true state so far, in % saved of the start graph's. CPU time is that of the process, one
thread, with collecting, fitting and planning. The methods with the true model then go on until they have used the CPU
time of the slowest method with a learned one, at most ``--cpu`` seconds.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import torch

from taso_agents.data.collect import Actor, collect, empty_dataset, play_record, random_actor
from taso_agents.dreams.planning import BeamSettings, LearnedSimulator, Planner, TrueSimulator, true_planner
from taso_agents.environment.real_env import make_env, state_of
from taso_agents.stats import iqm_estimate
from taso_agents.world_models import world_model
from taso_agents.world_models.fit import FitSettings, fit
from taso_gym.atomic import write_text
from taso_gym.registration import env_id
from taso_gym.rules.ruleset import RuleSet
from taso_gym.search import Budget, run

TRUE_BEAMS = {"true 1x16": BeamSettings(1, 16, 8, 4), "true 4x32": BeamSettings(4, 32, 8, 4)}
DREAMT_BEAM = BeamSettings(8, 32, 8, 4)
MAX_STEPS = 40
FIT = FitSettings(encoder_epochs=12, epochs=24)
FIRST_FITS = (1 / 8, 1 / 4, 1 / 2)
RANDOM_PART = 0.25
Curve = list[tuple[int, float, float]]
"""(true steps, CPU seconds, % saved) at every improvement."""


class Meter(gym.Wrapper):
    """Counts true steps and remembers the best state, in the environment and in plans.

    Args:
        env: the environment.
        steps, seconds: where to end.
    """

    def __init__(self, env: gym.Env, steps: float, seconds: float) -> None:
        super().__init__(env)
        self.env.reset()
        self.start_ps = self.best_ps = state_of(env).cost.time_ps
        self.limit, self.seconds = steps, seconds
        self.steps, self.began, self.curve = 0, time.process_time(), [(0, 0.0, 0.0)]

    def note(self, state: object) -> None:
        """Take a true state into account."""
        self.steps += 1
        if state.cost.time_ps < self.best_ps and self.steps <= self.limit:
            self.best_ps = state.cost.time_ps
            saved = 100 * (self.start_ps - self.best_ps) / self.start_ps
            self.curve.append((self.steps, time.process_time() - self.began, saved))

    def step(self, action: np.ndarray) -> tuple:
        """Take a step and note where it leads."""
        result = self.env.step(action)
        self.note(state_of(self.env))
        return result

    @property
    def spent(self) -> bool:
        """Whether steps or time are used up."""
        return self.steps >= self.limit or time.process_time() - self.began >= self.seconds


def play_until_spent(meter: Meter, actor: Actor, rng: np.random.Generator) -> Curve:
    """Play episodes with an actor until the budget is used up."""
    dataset = empty_dataset(meter.env)
    while not meter.spent:
        play_record(meter, actor, rng, dataset.store)
    return meter.curve


def with_true_model(meter: Meter, beam: BeamSettings, rng: np.random.Generator) -> Curve:
    """Plan with the true simulator; what a plan asks for counts."""
    layout = meter.env.unwrapped.layout
    simulator = TrueSimulator(meter.start_ps, meter.limit, meter.note, layout.matches)

    def act(env: gym.Env, observation: dict, rng: np.random.Generator) -> np.ndarray:
        simulator.left = max(meter.limit - meter.steps, 0)
        return planner(env, observation, rng)

    planner = true_planner(simulator, beam)
    return play_until_spent(meter, act, rng)


def with_learned_model(meter: Meter, kind: str, seed: int, rng: np.random.Generator) -> tuple[Curve, float]:
    """Collect, fit, plan; return the curve and the seconds of CPU time that a dreamt step took."""
    torch.manual_seed(seed)
    model, dataset = world_model(kind)(meter.observation_space, meter.action_space), empty_dataset(meter.env)
    ends = [round(part * meter.limit) for part in FIRST_FITS] + [meter.limit]
    collect(meter, random_actor(0.0), ends[0], rng, dataset)
    simulator = CountingSimulator(model)
    for end in ends[1:]:
        fit(model, dataset, FIT)
        planner = Planner(simulator, DREAMT_BEAM, model)
        while not meter.spent and meter.steps < end:
            actor = random_actor(0.0) if rng.random() < RANDOM_PART else planner
            dataset.episodes.append(play_record(meter, actor, rng, dataset.store))
    return meter.curve, simulator.seconds / max(simulator.steps, 1)


class CountingSimulator(LearnedSimulator):
    """Counts dreamt steps and their CPU time."""

    steps, seconds = 0, 0.0

    def step(self, states: list, actions: list) -> list:
        """Dream a batch of steps."""
        began = time.process_time()
        found = super().step(states, actions)
        self.seconds += time.process_time() - began
        self.steps += len(states)
        return found


def saved_at(curve: Curve, column: int, limit: float) -> float:
    """Return what was saved within a limit of steps (column 0) or seconds (column 1)."""
    return max(point[2] for point in curve if point[column] <= limit)


def one_seed(network: str, seed: int, options: argparse.Namespace) -> dict[str, Curve]:
    """Return the curves of all methods."""
    env = make_env(env_id(network), max_steps=MAX_STEPS)

    def rng() -> np.random.Generator:
        return np.random.default_rng([seed, 0])

    curves: dict[str, Curve] = {}
    slowest = 0.0
    for kind in options.kinds:
        meter = Meter(env, options.steps, np.inf)
        curves[kind], each = with_learned_model(meter, kind, seed, rng())
        took = time.process_time() - meter.began
        slowest = max(slowest, took)
        print(f"seed {seed} {kind}: {took:.1f} s CPU, {1e3 * each:.3f} ms a dreamt step", flush=True)
    seconds = min(slowest, options.cpu) if options.kinds else options.cpu
    methods: dict[str, Callable[[Meter], Curve]] = {
        name: lambda meter, beam=beam: with_true_model(meter, beam, rng()) for name, beam in TRUE_BEAMS.items()
    }
    methods["random"] = lambda meter: play_until_spent(meter, random_actor(0.0), rng())
    for name, method in methods.items():
        meter = Meter(env, np.inf, seconds)
        curves[name] = method(meter)
        each = (time.process_time() - meter.began) / max(meter.steps, 1)
        print(f"seed {seed} {name}: {meter.steps} true steps, {1e3 * each:.3f} ms each", flush=True)
    return curves


def recalled(seed: int, options: argparse.Namespace) -> dict[str, Curve]:
    """Return the curves of a seed, from its file if there is one of the same settings and rules."""
    rules = RuleSet.load("default").digest[:12]
    settings = [options.network, options.steps, f"{options.cpu:g}s", *options.kinds, rules, seed]
    path = options.folder / f"{'-'.join(map(str, settings))}.json" if options.folder else None
    if path and path.exists():
        return json.loads(path.read_text())
    curves = one_seed(options.network, seed, options)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(curves))
    return curves


def greedy(network: str) -> tuple[float, int, float]:
    """Return what greedy search saves in %, the candidates it weighs and its CPU seconds."""
    env = make_env(env_id(network))
    env.reset()
    start, began = state_of(env), time.process_time()
    found = run(start, "greedy", Budget(60.0))
    saved = 100 * (start.cost.time_ps - found.state.cost.time_ps) / start.cost.time_ps
    return saved, found.explored, time.process_time() - began


def plot(curves: list[dict[str, Curve]], steps: int, seconds: float, network: str, path: Path) -> None:
    """Draw the means over seeds against true steps and CPU time."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    columns = (("true steps", np.geomspace(10, steps, 60)), ("CPU seconds", np.geomspace(0.02, seconds, 60)))
    for column, (axis, (label, grid)) in enumerate(zip(axes, columns, strict=True)):
        for name in curves[0]:
            each = np.array([[saved_at(c[name], column, x) for x in grid] for c in curves])
            axis.plot(grid, each.mean(0), label=name)
            axis.fill_between(grid, each.min(0), each.max(0), alpha=0.15)
        axis.set(xlabel=label, xscale="log")
    axes[0].set_ylabel(f"cost of {network} saved, %")
    axes[0].legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print a table at equal steps and one at equal CPU time; draw the curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", nargs="?", default="SqueezeNet1.1")
    parser.add_argument("--kinds", nargs="*", default=["mdn", "discrete"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--cpu", type=float, default=5.0, help="most seconds of CPU time for the true model")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--folder", type=Path, help="a file of curves for each seed; what is there isn't run again")
    options = parser.parse_args()
    torch.set_num_threads(1)
    curves = [recalled(seed, options) for seed in options.seeds]
    saved, weighed, seconds = greedy(options.network)
    print(f"\n{options.network}; greedy saves {saved:.2f} %, {weighed} candidates weighed, {seconds:.2f} s\n")
    tables = (("true steps", 0, [options.steps // 8, options.steps // 4, options.steps // 2, options.steps]),)
    tables += (("CPU seconds", 1, [0.1, 0.5, 2.0, 5.0, 20.0]),)
    for label, column, limits in tables:
        print(f"| saved in % within {label} | " + " | ".join(map(str, limits)) + " |\n| --- ", end="")
        print("| --- " * len(limits) + "|")
        for name in curves[0]:
            cells = [str(iqm_estimate([saved_at(c[name], column, limit) for c in curves])) for limit in limits]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print()
    if options.plot:
        plot(curves, options.steps, 20.0, options.network, options.plot)


if __name__ == "__main__":
    main()

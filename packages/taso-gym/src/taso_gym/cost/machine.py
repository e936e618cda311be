"""What the machine's processors are called: times that were measured on one are of no other."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from taso_gym.errors import CostError

CPUS = Path("/proc/cpuinfo")
VECTORS = ("avx512f", "avx2", "avx", "sve2", "sve", "asimd")
"""Instructions of x86 and of ARM, the widest first."""


def cpu_name(cpus: Path = CPUS) -> str:
    """Return what a CPU calls itself, with family, model and the widest vectors: names alone are ambiguous.

    An ARM CPU has no name, but numbers of who made it and what.
    """
    try:
        facts = _facts(cpus.read_text(encoding="utf-8").split("\n\n")[0])
    except OSError:
        return platform.processor() or platform.machine()
    flags = facts.get("flags", facts.get("Features", "")).split()
    vectors = next((flag for flag in VECTORS if flag in flags), platform.machine())
    if "model name" not in facts and "CPU part" in facts:
        numbers = " ".join(f"{key} {facts.get(f'CPU {key}', '?')}" for key in ("implementer", "part", "variant"))
        return f"{platform.machine()} {numbers} {vectors}"
    name = facts.get("model name", platform.machine())
    return f"{name} family {facts.get('cpu family', '?')} model {facts.get('model', '?')} {vectors}"


def _facts(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def gpu_name() -> str:
    """Return the name of the first visible GPU, as the NVIDIA driver gives it."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    for number, path in enumerate(sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))):
        if str(number) == visible:
            lines = path.read_text(encoding="utf-8").splitlines()
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("Model"))
    raise CostError("expected an NVIDIA GPU, found none under /proc/driver/nvidia/gpus")

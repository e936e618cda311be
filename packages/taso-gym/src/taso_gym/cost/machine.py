"""What the machine's processors are called, since times measured on one are of no other, how many, how much memory."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import which

from taso_gym.errors import CostError

CPUS, GPUS = Path("/proc/cpuinfo"), Path("/proc/driver/nvidia/gpus")
MEMORY = Path("/proc/meminfo")
TOPOLOGY = Path("/sys/devices/system/cpu")
GROUP = Path("/sys/fs/cgroup")
"""Where a container sees its control group."""
LIMITS = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
)
"""In either version of them the files of a group's limit, of what it uses and what of, and what gives way of that."""
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


def physical_cores(topology: Path = TOPOLOGY) -> int:
    """Return how many cores this process may use; what shares one (hyperthreads) counts once, as in onnxruntime."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    places = (topology / f"cpu{number}/topology/thread_siblings_list" for number in os.sched_getaffinity(0))
    try:
        return len({place.read_text(encoding="utf-8") for place in places})
    except OSError:
        return len(os.sched_getaffinity(0))


def memory_bytes(group: Path = GROUP) -> int:
    """Return how much memory the machine has, or this container may use of it."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([found, *(limit for limit, _ in _limits(group))])


def available_bytes(memory: Path = MEMORY, group: Path = GROUP) -> int:
    """Return how much memory may be taken now: files that are kept in it give way."""
    try:
        free = int(_facts(memory.read_text(encoding="utf-8"))["MemAvailable"].removesuffix("kB")) << 10
    except (OSError, KeyError, ValueError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(min([free, *(limit - used for limit, used in _limits(group))]), 0)


def _limits(group: Path) -> Iterator[tuple[int, int]]:
    """Yield the bytes that this container may use, and uses but for files that give way; nothing without a limit."""
    for limit, used, parts, gives_way in LIMITS:
        with suppress(OSError, ValueError):  # no such file, or "max"
            most = int((group / limit).read_text(encoding="utf-8"))
            yield most, _used(group / used, group / parts, gives_way)


def _used(used: Path, parts: Path, gives_way: str) -> int:
    try:
        kept = dict(line.split() for line in parts.read_text(encoding="utf-8").splitlines())
        return int(used.read_text(encoding="utf-8")) - int(kept[gives_way])
    except (OSError, KeyError, ValueError):
        return 0


def _facts(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def gpu_name(gpus: Path = GPUS) -> str:
    """Return the name of the first visible GPU, as the NVIDIA driver gives it, and of a slice of one its size, too.

    Raises:
        CostError: neither the driver nor nvidia-smi knows the GPU that CUDA_VISIBLE_DEVICES says.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    for listed in (_of_tool().items(), _of_driver(gpus)):  # the driver's files don't know slices
        for key, name in listed:
            if key == visible or (visible.startswith(("GPU-", "MIG-")) and key.startswith(visible)):  # UUIDs may be cut
                return name
    raise CostError(f"expected an NVIDIA GPU {visible!r}, found none of it under {gpus} or by nvidia-smi -L")


def _of_driver(gpus: Path) -> Iterator[tuple[str, str]]:
    """Yield a name for each number and UUID."""
    for number, path in enumerate(sorted(gpus.glob("*/information"))):
        facts = _facts(path.read_text(encoding="utf-8"))
        yield from ((key, facts["Model"]) for key in (str(number), facts.get("GPU UUID", "?")))


def _of_tool() -> dict[str, str]:
    """Return the same by nvidia-smi; of a GPU that has slices (MIG) it is the name of the first, which CUDA runs on."""
    names: dict[str, str] = {}
    if not (tool := which("nvidia-smi")):
        return names
    gpu = number = uuid = ""
    for line in subprocess.run([tool, "-L"], capture_output=True, text=True, check=False).stdout.splitlines():
        if found := re.match(r"GPU (\d+): (.+) \(UUID: (\S+)\)", line):
            number, gpu, uuid = found.groups()
            names |= {number: gpu, uuid: gpu}
        elif found := re.match(r"\s+(MIG \S+) .*\(UUID: (\S+)\)", line):
            names[found[2]] = f"{gpu} {found[1]}"
            if names[number] == gpu:  # the first
                names |= {number: names[found[2]], uuid: names[found[2]]}
    return names

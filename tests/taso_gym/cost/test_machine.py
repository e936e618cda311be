"""Names of processors: two that take different times have different ones."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from taso_gym.cost.machine import available_bytes, cpu_name, gpu_name, memory_bytes, physical_cores
from taso_gym.errors import CostError

X86 = """processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC 9R14
flags		: fpu sse2 avx avx2 avx512f

processor	: 1
model name	: another
"""
ARM = """processor	: 0
BogoMIPS	: 50.00
Features	: fp asimd evtstrm {features}
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: {variant}
CPU part	: {part}

processor	: 1
"""


def named(path: Path, text: str) -> str:
    path.write_text(text)
    return cpu_name(path)


def test_a_name_says_model_and_vectors(tmp_path: Path) -> None:
    assert named(tmp_path / "cpuinfo", X86) == "AMD EPYC 9R14 family 25 model 17 avx512f"


def test_arm_cpus_are_told_apart(tmp_path: Path) -> None:
    chips = [("", "0x3", "0xd0c"), ("sve", "0x1", "0xd40"), ("sve sve2", "0x1", "0xd4f"), ("sve sve2", "0x0", "0xd4f")]
    texts = (ARM.format(features=features, variant=variant, part=part) for features, variant, part in chips)
    names = [named(tmp_path / "cpuinfo", text) for text in texts]
    assert names[1] == f"{platform.machine()} implementer 0x41 part 0xd40 variant 0x1 sve"
    assert len(set(names)) == 4
    assert [name.split()[-1] for name in names] == ["asimd", "sve", "sve2", "sve2"]


def test_without_the_list_of_cpus_there_is_still_a_name(tmp_path: Path) -> None:
    assert cpu_name(tmp_path / "none") in (platform.processor(), platform.machine())


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver's folder with two GPUs, and nothing else to ask."""
    for bus, (name, uuid) in {"0000:17:00.0": ("V100", "GPU-11aa-0"), "0000:65:00.0": ("H100", "GPU-22bb-0")}.items():
        path = tmp_path / "gpus" / bus / "information"
        path.parent.mkdir(parents=True)
        path.write_text(f"Model: \t\t NVIDIA {name}\nIRQ:   \t\t 18\nGPU UUID: \t {uuid}\nBus Location: \t {bus}\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "gpus"


@pytest.mark.parametrize(
    ("visible", "name"),
    [(None, "V100"), ("1", "H100"), ("1,0", "H100"), ("GPU-22bb-0", "H100"), ("GPU-22,GPU-11", "H100")],
)
def test_a_gpu_is_found_by_number_or_uuid(
    gpus: Path, monkeypatch: pytest.MonkeyPatch, visible: str | None, name: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_name(gpus) == f"NVIDIA {name}"


@pytest.mark.parametrize("visible", ["", "-1", "2", "GPU-33", "GPU", "MIG-44"])
def test_a_gpu_that_is_not_there_is_named(gpus: Path, monkeypatch: pytest.MonkeyPatch, visible: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(CostError, match=f"expected an NVIDIA GPU '{visible}', found none of it under"):
        gpu_name(gpus)


@pytest.mark.parametrize(
    ("visible", "name"),
    [
        ("0", "NVIDIA A100 MIG 3g.20gb"),
        ("GPU-55", "NVIDIA A100 MIG 3g.20gb"),
        ("MIG-66-1", "NVIDIA A100 MIG 1g.5gb"),
        ("1", "NVIDIA T4"),
    ],
)
def test_the_drivers_tool_knows_slices_the_first_of_which_is_used(
    gpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, visible: str, name: str
) -> None:
    tool = tmp_path / "nvidia-smi"
    lines = (
        "GPU 0: NVIDIA A100 (UUID: GPU-55-0)",
        "  MIG 3g.20gb     Device  0: (UUID: MIG-66-0)",
        "  MIG 1g.5gb      Device  1: (UUID: MIG-66-1)",
        "GPU 1: NVIDIA T4 (UUID: GPU-77-0)",
    )
    tool.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu_name(gpus) == gpu_name(tmp_path / "none") == name


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only Linux says which CPUs a process may use")
def test_hyperthreads_of_a_core_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4, 5})
    for number in (0, 1, 4, 5):
        place = tmp_path / f"cpu{number}" / "topology"
        place.mkdir(parents=True)
        (place / "thread_siblings_list").write_text(f"{number % 4},{number % 4 + 4}\n")
    assert physical_cores(tmp_path) == 2
    assert physical_cores(tmp_path / "nowhere") == 4


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_container_has_the_memory_that_it_may_use(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    all_of_it = memory_bytes(tmp_path)
    for text, expected in {"max\n": all_of_it, "9223372036854771712\n": all_of_it, "536870912\n": 1 << 29}.items():
        file.write_text(text)
        assert memory_bytes(tmp_path) == expected


@pytest.mark.parametrize(
    ("limit", "used", "parts", "gives_way"),
    [
        ("memory.max", "memory.current", "memory.stat", "inactive_file"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"),
    ],
)
def test_what_a_container_uses_is_not_available(
    tmp_path: Path, limit: str, used: str, parts: str, gives_way: str
) -> None:
    memory = tmp_path / "meminfo"
    memory.write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    assert available_bytes(memory, tmp_path) == 8000 << 10
    (tmp_path / limit).parent.mkdir(exist_ok=True)
    (tmp_path / limit).write_text(f"{4000 << 10}\n")
    assert available_bytes(memory, tmp_path) == 4000 << 10  # where it doesn't say what it uses
    (tmp_path / used).write_text(f"{3900 << 10}\n")
    (tmp_path / parts).write_text(f"anon 1\n{gives_way} {1000 << 10}\n")
    assert available_bytes(memory, tmp_path) == 1100 << 10
    (tmp_path / used).write_text(f"{6000 << 10}\n")
    assert available_bytes(memory, tmp_path) == 0

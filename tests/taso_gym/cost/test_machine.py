"""Names of processors: two that take different times have different ones."""

from __future__ import annotations

import platform
from pathlib import Path

from taso_gym.cost.machine import cpu_name

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

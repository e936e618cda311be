"""Running ``taso-gym`` in this process, as a shell would."""

from __future__ import annotations

import sys

import pytest

from taso_gym import cli


def run(*arguments: object) -> int:
    """Run the command line and return its exit code."""
    sys.argv = ["taso-gym", *map(str, arguments)]
    with pytest.raises(SystemExit) as ended:
        cli.main()
    code = ended.value.code
    assert isinstance(code, int)
    return code

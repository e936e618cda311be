"""``python -m taso_gym`` is the command ``taso-gym``."""

from taso_gym.cli import main

main()

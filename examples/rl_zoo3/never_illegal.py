"""A wrapper that stops at the first illegal action; the policies of taso-agents never choose one."""

from typing import Any

import gymnasium as gym


class NeverIllegal(gym.Wrapper):
    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        result = self.env.step(action)
        if result[-1]["invalid_action"]:
            raise ValueError(f"expected a legal action, found {action}")
        return result

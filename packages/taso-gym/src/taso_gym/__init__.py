"""Optimise ONNX graphs with proven substitutions: a library, a command and a Gymnasium environment."""

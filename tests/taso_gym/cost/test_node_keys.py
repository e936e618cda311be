import pytest

from taso_gym.cost.node_keys import COLD, bytes_of, operands_of, operator_of, shapes_of


@pytest.mark.parametrize(
    ("key", "part", "largest"),
    [
        ("Relu-14[](float[1, 8])", 0.0, 8),
        ("Relu-14[](float[8, 32768])", 0.0, 1 << 18),
        ("Conv-11[pads=[1, 1]](float[1, 4, 2, 2], const float[4, 4, 1, 1], const float[4])", 20 / 36, 16),
        ("Add-14[](float[4], const float[]=[2.0])", 1 / 5, 4),
        ("Gather-13[axis=0](const float[262144, 2], int64[1, 20])", 524288 / 524308, 20),
        ("RandomNormal-1[shape=[2]]()", 0.0, 0),
    ],
)
def test_what_of_the_operands_is_constant_and_how_large_others_are(key: str, part: float, largest: int) -> None:
    assert operands_of(key) == operands_of(COLD + key) == (pytest.approx(part), largest)


def test_a_key_says_operator_shapes_and_bytes() -> None:
    key = "ms.nchwc.Conv-1[group=1](float[1, 16, 8, 8], const float[32, 16, 1, 1])"
    assert operator_of(key) == operator_of(COLD + key) == "Conv"
    assert shapes_of(key) == [(False, [1, 16, 8, 8]), (True, [32, 16, 1, 1])]
    assert bytes_of(key) == 4 * (16 * 64 + 32 * 16)

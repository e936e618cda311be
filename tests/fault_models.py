"""A model with something of everything, to be spoilt, and others that fuzzing starts from."""

from collections.abc import Mapping

import numpy as np
from model_texts import parsed
from onnx import ModelProto, TensorProto, helper

TEXT = """g (float[N, 3] x, bool c, float[1, 2, 5, 5] image) => (y, z) {
    m = MatMul(x, w)
    a = Add(m, b)
    i = If (c) <then_branch = t () => (float[N, 4] p) { p = Relu(a) },
                else_branch = e () => (float[N, 4] q) <float k = {2.0}> { q = Mul(a, k) }>
    s = Shape(i)
    d = Gather(s, one)
    u = Unsqueeze(d, axis)
    shape = Concat <axis = 0>(minus, u)
    r = Reshape(i, shape)
    y = my.F(r)
    v = Conv <pads = [1, 1, 1, 1]>(image, kernel)
    z = Softmax <axis = 1>(v)
}"""
FUNCTION = '<domain: "my", opset_import: ["" : 20]> F (x) => (y) { y = Identity(x) }'


def whole() -> ModelProto:
    """Return a model with something of everything."""
    return parsed(
        TEXT,
        more=FUNCTION,
        w=np.arange(12, dtype=np.float32).reshape(3, 4),
        b=np.ones(4, np.float32),
        one=np.int64(1),
        axis=np.array([0]),
        minus=np.array([-1]),
        kernel=np.ones((2, 2, 3, 3), np.float32),
    )


def seeds() -> Mapping[str, ModelProto]:
    """Return small models that together have most of what a file can have."""
    shapes = parsed(
        """g (float[2, N] x, int64[3] i) => (y, t, e, f) {
            y = Slice(x, start, end)
            t, u = TopK(x, one)
            e = Expand(one, i)
            f = ConstantOfShape <value = float[1] {2.0}>(i)
        }""",
        start=np.array([0]), end=np.array([1]), one=np.array([1]),
    )  # fmt: skip
    loop = parsed(
        """g (int64 n, bool c, float[2] x) => (y, all) {
            y, all = Loop (n, c, x) <body = b (int64 k, bool going, float[2] v) => (bool on, float[2] w, float[2] o) {
                on = Identity(going)
                w = Add(v, x)
                o = Identity(w)
            }>
        }"""
    )
    normalised = parsed(
        """g (float[1, 4, 8, 8] x) => (y, k) {
            n = BatchNormalization(x, s, b, m, v)
            p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]>(n)
            d = Dropout(p)
            a, k = Split <axis = 1, num_outputs = 2>(d)
            y = LayerNormalization <axis = -1>(a, g)
        }""",
        s=np.ones(4, np.float32), b=np.zeros(4, np.float32), m=np.zeros(4, np.float32), v=np.ones(4, np.float32),
        g=np.ones(4, np.float32),
    )  # fmt: skip
    odd = parsed("g (string[2] s, float16[2] h, optional(float[2]) o) => (t, r) { t = Identity(s)\n r = Neg(h) }")
    odd.graph.initializer.append(helper.make_tensor("packed", TensorProto.INT4, [3], [1, 2, 3]))
    return {"whole": whole(), "shapes": shapes, "loop": loop, "normalised": normalised, "odd": odd}

"""Conversion to another opset keeps what onnx's converter drops."""

import numpy as np
import onnx
import pytest
from model_texts import parsed, run

from taso_gym.errors import ModelError
from taso_gym.onnx_io.convert import converted


@pytest.mark.parametrize("opset", [14, 17])
def test_functions_are_inlined(opset, tmp_path):
    """One of another opset than the model's, too."""
    more = f'<domain: "my", opset_import: ["" : {opset}]> F (a) => (b) {{ c = HardSwish(a)\n b = Neg(c) }}'
    model = parsed("g (float[4] x) => (float[4] z) { y = my.F(x)\n z = my.F(y) }", opset=17, more=more)
    onnx.save(model, tmp_path / "a.onnx")
    found = converted(tmp_path / "a.onnx", 21)
    assert [node.op_type for node in found.graph.node] == ["HardSwish", "Neg"] * 2
    assert not found.functions and {i.version for i in found.opset_import if not i.domain} == {21}
    x = np.array([-2, -1, 1, 4], np.float32)
    np.testing.assert_allclose(run(found, x=x)[0], run(model, x=x)[0], rtol=1e-6)


def test_what_is_said_of_a_graph_its_inputs_and_outputs_stays(tmp_path):
    more = '<domain: "my", opset_import: ["" : 17]> F (a) => (b) { b = Neg(a) }'
    model = parsed("g (float[n] x) => (float[n] y) { y = my.F(x) }", opset=17, more=more)
    for place in (model, model.graph, *model.graph.input, *model.graph.output):
        place.metadata_props.add(key="of", value="somebody")
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    model.graph.quantization_annotation.add(tensor_name="x")
    onnx.save(model, tmp_path / "a.onnx")
    found = converted(tmp_path / "a.onnx", 21)
    assert found.metadata_props == model.metadata_props and found.graph.metadata_props == model.graph.metadata_props
    assert found.graph.input == model.graph.input and found.graph.output == model.graph.output
    assert found.graph.quantization_annotation == model.graph.quantization_annotation


def test_training_information_is_not_left_out(tmp_path):
    """Its graphs are of the opset that the model had."""
    model = parsed("g (float[4] x) => (float[4] y) { y = Add(x, w) }", opset=11, w=np.ones(4, np.float32))
    model.training_info.add().algorithm.node.add(op_type="Identity", input=["w"], output=["v"])
    onnx.save(model, tmp_path / "a.onnx")
    with pytest.raises(ModelError, match=r"a\.onnx: expected a model that converts to opset 13, found training inf"):
        converted(tmp_path / "a.onnx", 13)

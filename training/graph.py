"""A BERT encoder written down as an ONNX graph of onnxruntime's fused operators."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from training.quantise import quantise_blocks, quantise_rows

Weights = Literal["int8", "fp32"]
State = Mapping[str, NDArray[np.float32]]

HEAD = "head.weight"
"""Name of a matrix (width, dim) that each last hidden state is multiplied with, if the weights have one."""

_FUSED = "com.microsoft"


@dataclass(frozen=True, slots=True)
class BertShape:
    """What the weights alone do not say."""

    heads: int
    layers: int
    dim: int
    """Numbers of a vector: the width of the layers, or fewer behind a head."""
    epsilon: float
    """Of every layer normalisation."""
    first_position: int
    """Row of the position table that the first token takes: 0 in BERT, after the padding row in RoBERTa."""
    max_length: int
    """Most tokens of a text; later rows of the position table are left out."""


def encoder_graph(state: State, shape: BertShape, weights: Weights) -> ModelProto:
    """Return a model from `input_ids`, int32 (texts, tokens), to `hidden`, the last state (texts, tokens, dim).

    Writing the graph instead of tracing it gives the fused operators for certain, no attention mask (a batch is
    never padded), and the same bytes from the same weights whatever torch's exporter does this year.

    Args:
        state: Weights under the names that transformers gives those of `BertModel`, and perhaps `HEAD`.
        shape: The numbers of the architecture.
        weights: "int8" stores matrices as bytes and multiplies them out when the model is loaded.
    """
    graph = _Graph(weights, shape.epsilon)
    x = _embed(graph, state, shape)
    for layer in range(shape.layers):
        x = _layer(graph, state, f"encoder.layer.{layer}.", x, shape.heads)
    if HEAD in state:
        x = graph.multiply("head", state[HEAD], x)
    graph.add("Identity", [x], "hidden", domain="")
    body = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT32, ["texts", "tokens"])],
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["texts", "tokens", shape.dim])],
        graph.weights,
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(_FUSED, 1)]
    return helper.make_model(body, producer_name="medlink", opset_imports=opsets, ir_version=10)


def _embed(graph: "_Graph", state: State, shape: BertShape) -> str:
    last = shape.first_position + shape.max_length
    positions = state["embeddings.position_embeddings.weight"][shape.first_position : last]
    # One text a row, so every token is of type 0 and its vector can be part of the position.
    positions = positions + state["embeddings.token_type_embeddings.weight"][0]
    inputs = [
        "input_ids",
        "",
        graph.table("words", state["embeddings.word_embeddings.weight"]),
        graph.constant("positions", positions),
        "",
        graph.constant("embeddings.gain", state["embeddings.LayerNorm.weight"]),
        graph.constant("embeddings.shift", state["embeddings.LayerNorm.bias"]),
    ]
    # onnxruntime insists on the second output, a mask summary, though there is no mask.
    return graph.add("EmbedLayerNormalization", inputs, "embedded", unused="mask_summary", epsilon=shape.epsilon)


def _layer(graph: "_Graph", state: State, prefix: str, x: str, heads: int) -> str:
    parts = [f"{prefix}attention.self.{name}" for name in ("query", "key", "value")]
    projection = np.concatenate([state[f"{part}.weight"].T for part in parts], axis=1)  # (dim, 3 dim)
    attended = graph.add(
        "Attention",
        [
            x,
            graph.matrix(f"{prefix}qkv", projection),
            graph.constant(f"{prefix}qkv.bias", np.concatenate([state[f"{part}.bias"] for part in parts])),
        ],
        f"{prefix}attended",
        num_heads=heads,
    )
    x = _project_and_add(graph, state, f"{prefix}attention.output.", attended, x)
    inner = graph.multiply(f"{prefix}intermediate", state[f"{prefix}intermediate.dense.weight"].T, x)
    bias = graph.constant(f"{prefix}intermediate.bias", state[f"{prefix}intermediate.dense.bias"])
    activated = graph.add("BiasGelu", [inner, bias], f"{prefix}activated")
    return _project_and_add(graph, state, f"{prefix}output.", activated, x)


def _project_and_add(graph: "_Graph", state: State, prefix: str, x: str, residual: str) -> str:
    projected = graph.multiply(f"{prefix}dense", state[f"{prefix}dense.weight"].T, x)
    inputs = [
        projected,
        residual,
        graph.constant(f"{prefix}gain", state[f"{prefix}LayerNorm.weight"]),
        graph.constant(f"{prefix}shift", state[f"{prefix}LayerNorm.bias"]),
        graph.constant(f"{prefix}bias", state[f"{prefix}dense.bias"]),
    ]
    return graph.add("SkipLayerNormalization", inputs, f"{prefix}out", epsilon=graph.epsilon)


@dataclass(slots=True)
class _Graph:
    """Nodes and weights as they pile up; each method returns the name of what it added."""

    stored_as: Weights
    epsilon: float
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)

    def add(
        self,
        operator: str,
        inputs: list[str],
        output: str,
        *,
        domain: str = _FUSED,
        unused: str = "",
        **attributes: float,
    ) -> str:
        outputs = [output, unused] if unused else [output]
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return output

    def multiply(self, name: str, matrix: NDArray[np.float32], x: str) -> str:
        return self.add("MatMul", [x, self.matrix(f"{name}.weight", matrix)], name, domain="")

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def matrix(self, name: str, values: NDArray[np.float32]) -> str:
        if self.stored_as == "fp32":
            return self.constant(name, values)
        stored, scales, block = quantise_blocks(values)
        return self._dequantise(name, stored, scales, block)

    def table(self, name: str, values: NDArray[np.float32]) -> str:
        if self.stored_as == "fp32":
            return self.constant(name, values)
        return self._dequantise(name, *quantise_rows(values), block=0)

    def _dequantise(self, name: str, stored: NDArray[np.int8], scales: NDArray[np.float32], block: int) -> str:
        inputs = [self.constant(f"{name}.int8", stored), self.constant(f"{name}.scale", scales)]
        return self.add("DequantizeLinear", inputs, name, domain="", axis=0, block_size=block)

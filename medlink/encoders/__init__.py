"""Encoders that serve: texts to unit vectors, from a directory that says what it is."""

from pathlib import Path

from medlink.encoders import hashing, onnx
from medlink.encoders.artefact import read_kind
from medlink.encoders.hashing import HashingEncoder
from medlink.encoders.onnx import OnnxEncoder
from medlink.errors import UnknownValueError
from medlink.protocols import Encoder

__all__ = ["HashingEncoder", "OnnxEncoder", "load_encoder"]


def load_encoder(directory: Path, threads: int | None = None) -> Encoder:
    """Load the encoder of a directory, whatever its kind, after checking every file of it.

    Args:
        directory: Written by `medlink train export` or `HashingEncoder.save`.
        threads: Batches that one `encode` computes at a time; the cores that this process may use when left out.

    Raises:
        EncoderError: The directory is damaged, incomplete or of another format.
        UnknownValueError: The manifest names a kind of encoder that does not exist.
    """
    kind = read_kind(directory)
    if kind == hashing.KIND:
        return HashingEncoder.load(directory)
    if kind == onnx.KIND:
        return OnnxEncoder.load(directory, threads=threads)
    raise UnknownValueError("encoder kind", kind, [hashing.KIND, onnx.KIND])

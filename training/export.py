"""From a Hugging Face checkpoint to an encoder directory, or to an error and nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from medlink.encoders.artefact import FORMAT, new_directory
from medlink.encoders.onnx import KIND, MODEL, TOKENIZER, OnnxEncoder
from medlink.encoders.pooling import POOLINGS, Pooling
from medlink.errors import UnknownValueError
from medlink.manifest import describe_files, write_manifest
from training.checkpoint import Checkpoint, read_checkpoint
from training.graph import Weights, encoder_graph
from training.parity import (
    Drift,
    drift,
    probe_texts,
    require_agreement,
    require_batch_invariance,
    torch_vectors,
)
from training.shrink import Cut, shrink

_STORED = {"int8": "int8-stored", "fp32": "fp32"}


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, and how close it is to the network it came from."""

    directory: Path
    name: str
    dim: int
    lowercase: bool
    bytes: int
    probes: int
    fp32: Drift
    """The graph in fp32 against torch, the worse of two pad lengths."""
    stored: Drift
    """The graph as written against the graph in fp32: what storing bytes cost."""


@dataclass(frozen=True, slots=True)
class About:
    """What stands beside the weights for people to read."""

    name: str = ""
    """What the encoder is called; as its checkpoint if empty."""
    card: Path | None = None
    """Markdown to follow the model card: data, recipe, results."""
    notices: Sequence[Path] = ()
    """Licence files; those of the checkpoint come along anyway."""


def export(
    model: str | Path,
    output: Path,
    *,
    pooling: Pooling,
    max_length: int,
    lowercase: bool | None = None,
    weights: Weights = "int8",
    about: About | None = None,
    cut: Cut | None = None,
) -> ExportReport:
    """Write a local checkpoint as an encoder directory.

    The directory appears only if the graph agrees with torch at two pad lengths (no number of a unit vector off by
    1e-4, the same nearest neighbours) and a vector does not depend on its batch.

    Args:
        model: A directory with config.json, weights and tokenizer, or "minilm" for the packaged all-MiniLM-L6-v2.
        output: Must not exist, or be empty.
        pooling: What the network was trained with; SapBERT with "cls".
        max_length: Most tokens of a text, special ones included.
        lowercase: Whether texts are lower-cased first; as the tokenizer does when left out.
        weights: "int8" stores matrices in a quarter of the bytes and computes in fp32.
        about: Name, card and licence files.
        cut: What to leave out; the gates then hold the graph against the network without it.

    Raises:
        EncoderError: The checkpoint cannot be read or written as a graph, or the graph does not agree.
        OSError: The disk is full or `output` is not writable.
        UnknownValueError: `pooling` or `weights` is not one of the choices.
    """
    for kind, value, valid in (("pooling", pooling, POOLINGS), ("weights", weights, tuple(_STORED))):
        if value not in valid:
            raise UnknownValueError(kind, value, sorted(valid))
    checkpoint = shrink(read_checkpoint(model, max_length), cut or Cut(), pooling)
    lowercase = checkpoint.uncased if lowercase is None else lowercase
    texts = probe_texts(lowercase=lowercase)
    about = about or About()
    facts = _facts(checkpoint, pooling, lowercase) | ({"name": about.name} if about.name else {})

    with TemporaryDirectory() as scratch:
        _write(Path(scratch), checkpoint, {**facts, "weights": "fp32"}, "fp32")
        exact = OnnxEncoder.load(Path(scratch)).encode(texts).vectors
    fp32 = _compare_with_torch(exact, checkpoint, texts, pooling)

    with new_directory(output) as directory:
        facts["weights"] = _STORED[weights]
        _write(directory, checkpoint, facts, weights)
        encoder = OnnxEncoder.load(directory)
        require_batch_invariance(encoder, texts)
        stored = drift(encoder.encode(texts).vectors, exact)
        facts["parity"] = {"probes": len(texts), "fp32_to_torch": asdict(fp32), "stored_to_fp32": asdict(stored)}
        files = _finish(directory, facts, about)
    size = sum(file["bytes"] for file in files.values())
    return ExportReport(output, facts["name"], encoder.dim, lowercase, size, len(texts), fp32, stored)


def _compare_with_torch(
    exact: NDArray[np.float32], checkpoint: Checkpoint, texts: Sequence[str], pooling: Pooling
) -> Drift:
    found = []
    for padding in ("longest", "max_length"):
        expected = torch_vectors(
            checkpoint.network,
            checkpoint.tokenizer,
            texts,
            pooling=pooling,
            max_length=checkpoint.shape.max_length,
            padding=padding,
        )
        found.append(require_agreement(exact, expected, f"torch, padded to {padding}"))
    return max(found, key=lambda drift: drift.max_difference)


def _facts(checkpoint: Checkpoint, pooling: Pooling, lowercase: bool) -> dict[str, Any]:
    base = {"model": checkpoint.origin, "licence": checkpoint.licence, "sha256": checkpoint.sha256}
    return {
        "format": FORMAT,
        "kind": KIND,
        "name": checkpoint.name,
        "dim": checkpoint.shape.dim,
        "pooling": pooling,
        "normalise": True,
        "max_length": checkpoint.shape.max_length,
        "lowercase": lowercase,
        "base": {**base, "changes": list(checkpoint.changes)} if checkpoint.changes else base,
        "parity": {},
    }


def _write(directory: Path, checkpoint: Checkpoint, facts: dict[str, Any], weights: Weights) -> None:
    graph = encoder_graph(checkpoint.state, checkpoint.shape, weights)
    (directory / MODEL).write_bytes(graph.SerializeToString(deterministic=True))
    (directory / TOKENIZER).write_text(checkpoint.tokenizer_json, encoding="utf-8")
    for name, content in checkpoint.notices.items():
        (directory / name).write_bytes(content)
    write_manifest(directory, {**facts, "files": describe_files(directory)})


def _finish(directory: Path, facts: dict[str, Any], about: About) -> dict[str, dict[str, Any]]:
    for path in about.notices:
        (directory / path.name).write_bytes(path.read_bytes())
    more = f"\n{about.card.read_text(encoding='utf-8')}" if about.card else ""
    (directory / "README.md").write_text(model_card(facts) + more, encoding="utf-8")
    files = describe_files(directory)
    write_manifest(directory, {**facts, "files": files})
    return files


def model_card(facts: Mapping[str, Any]) -> str:
    """Return the README of an encoder directory, from its manifest."""
    base, parity = facts["base"], facts["parity"]
    torch_, stored = parity["fp32_to_torch"], parity["stored_to_fp32"]
    case = "lower-cased" if facts["lowercase"] else "cased"
    cuts = "".join(f"\n- Then cut: {change}." for change in base.get("changes", ()))
    return f"""# {facts["name"]}

Turns a name into a unit vector of {facts["dim"]} numbers. Written by `medlink train export`.

- Made from {base["model"]} (licence: {base["licence"]}; sha256 of the checkpoint: {base["sha256"]}).
- What was changed: the network was written down as an ONNX graph without its pooler, positions beyond
  {facts["max_length"]} were left out, weights are {facts["weights"]}. It computes in fp32.{cuts}
- Reads {case} text, {facts["max_length"]} tokens at most; pooling: {facts["pooling"]}.
- On {parity["probes"]} probe names, fp32 graph against torch: numbers differ by {torch_["max_difference"]:.1e} at most,
  {torch_["changed_top1"]:.1%} of nearest neighbours changed.
- As stored, against the fp32 graph: cosine {stored["mean_cosine"]:.5f} on average, {stored["min_cosine"]:.5f} at least,
  {stored["changed_top1"]:.1%} of nearest neighbours changed.

Not a medical device; nobody has tested it on patients' records.
"""

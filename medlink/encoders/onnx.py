"""The encoder that serves: an ONNX graph on onnxruntime, batches of texts of exactly one token length."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors
from tokenizers import Tokenizer

from medlink.encoders.artefact import check_fields, damaged, read_facts
from medlink.encoders.inputs import check_texts
from medlink.encoders.pooling import POOLINGS, Pooling, pool
from medlink.manifest import fingerprint
from medlink.types import Embeddings

KIND = "onnx"
MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
WEIGHTS = ("int8-stored", "fp32")

_FIELDS: dict[str, type] = {
    "name": str,
    "dim": int,
    "pooling": str,
    "normalise": bool,
    "max_length": int,
    "lowercase": bool,
    "weights": str,
    "base": dict,
    "parity": dict,
}
_BASE_FIELDS: dict[str, type] = {"model": str, "licence": str, "sha256": str}
_LOAD_ERRORS = tuple(
    getattr(ort_errors, name)
    for name in ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NotImplemented", "RuntimeException")
)
# More tokens a batch gain nothing: the hidden states of 512 stay in the cache of a core.
_BATCH_TOKENS = 512
# Texts tokenized at a time, which bounds memory whatever the caller sends.
_WINDOW = 16_384


class OnnxEncoder:
    """Encodes texts with the network of an encoder directory.

    The graph takes `input_ids`, int32 (texts, tokens), and gives the last hidden state. It has no attention mask,
    because a batch holds texts of one token length and is never padded; that is why a vector is the same, bit for
    bit, whatever else is encoded with it (docs/decisions/0003).
    """

    def __init__(
        self, session: onnxruntime.InferenceSession, tokenizer: Tokenizer, facts: Mapping[str, Any], threads: int
    ) -> None:
        """Use `load`; a session of another origin is not checked."""
        self._session = session
        self._tokenizer = tokenizer
        self._threads = threads
        self._dim: int = facts["dim"]
        self._lowercase: bool = facts["lowercase"]
        self._pooling = cast(Pooling, facts["pooling"])
        self._fingerprint = _fingerprint(facts)

    @classmethod
    def load(cls, directory: Path, *, threads: int | None = None) -> Self:
        """Load the network of a directory after comparing every file with the manifest.

        Args:
            directory: Written by `medlink train export`.
            threads: Batches that one `encode` computes at a time; the cores that this process may use when left out.

        Raises:
            EncoderError: The directory is damaged, incomplete or not of this kind.
            ValueError: `threads` is not positive.
        """
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be positive, not {threads}")
        facts = read_facts(directory, KIND, _FIELDS)
        _check_facts(directory, facts)
        session = _open_session(directory)
        width = session.get_outputs()[0].shape[-1]
        if [node.name for node in session.get_inputs()] != ["input_ids"] or width != facts["dim"]:
            raise damaged(directory, f"{MODEL} does not take input_ids alone or does not give {facts['dim']} numbers")
        tokenizer = open_tokenizer(directory, facts["max_length"])
        return cls(session, tokenizer, facts, available_cores() if threads is None else threads)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def lowercase(self) -> bool:
        """Whether `encoder_text` lower-cases for this encoder."""
        return self._lowercase

    @property
    def fingerprint(self) -> str:
        """Hash of everything that decides a vector: weights, tokenizer, pooling, length."""
        return self._fingerprint

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Encode texts that went through `encoder_text`; safe to call from several threads.

        Raises:
            ValueError: A text is not a string that UTF-8 can hold; the message names its index.
        """
        check_texts(texts)
        vectors = np.empty((len(texts), self._dim), dtype=np.float32)
        truncated = np.zeros(len(texts), dtype=np.bool_)
        for start in range(0, len(texts), _WINDOW):
            part = slice(start, start + _WINDOW)
            self._encode(texts[part], vectors[part], truncated[part])
        return Embeddings(vectors, truncated)

    def _encode(self, texts: Sequence[str], vectors: NDArray[np.float32], truncated: NDArray[np.bool_]) -> None:
        encodings = self._tokenizer.encode_batch(list(texts))
        truncated[:] = [bool(encoding.overflowing) for encoding in encodings]
        tokens = [encoding.ids for encoding in encodings]
        lengths = np.array([len(ids) for ids in tokens])
        batches = list(equal_length_batches(lengths, _BATCH_TOKENS))

        def fill(rows: NDArray[np.int64]) -> None:
            input_ids = np.array([tokens[row] for row in rows], dtype=np.int32)
            hidden = self._session.run(None, {"input_ids": input_ids})[0]
            vectors[rows] = pool(hidden, np.ones(input_ids.shape, dtype=np.int64), self._pooling)

        if len(batches) == 1 or self._threads == 1:
            for rows in batches:
                fill(rows)
            return
        with ThreadPoolExecutor(self._threads) as workers:
            list(workers.map(fill, batches))  # a list, so that the error of a batch is raised


def equal_length_batches(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each batch: all of one length, `budget` tokens at most unless one text has more.

    Args:
        lengths: Token count of each text, shape (texts,).
        budget: Most tokens of a batch.
    """
    order = np.argsort(lengths, kind="stable")
    starts = np.flatnonzero(np.diff(lengths[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        size = max(1, budget // int(lengths[rows[0]]))
        for start in range(0, len(rows), size):
            yield rows[start : start + size]


def open_tokenizer(directory: Path, max_length: int) -> Tokenizer:
    """Open the tokenizer of a directory, cut at `max_length` tokens, special ones included, and never padding.

    Raises:
        EncoderError: The file is not a tokenizer.
    """
    try:
        tokenizer = Tokenizer.from_file(str(directory / TOKENIZER))
    except Exception as error:  # noqa: BLE001 - tokenizers raises nothing more precise
        raise damaged(directory, f"{TOKENIZER} is not a tokenizer ({error})") from None
    tokenizer.no_padding()  # the file may carry padding and truncation of its own
    tokenizer.enable_truncation(max_length)
    return tokenizer


def available_cores() -> int:
    """Return how many cores this process may use: affinity and, in a container, the CPU quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, math.ceil(int(quota) / int(period))))


def _check_facts(directory: Path, facts: dict[str, Any]) -> None:
    changes: dict[str, type] = {"changes": list} if "changes" in facts["base"] else {}
    check_fields(directory, facts["base"], {**_BASE_FIELDS, **changes}, "base")
    missing = sorted({MODEL, TOKENIZER} - set(facts["files"]))
    if missing:
        raise damaged(directory, f"its manifest lists no {' and no '.join(missing)}")
    if facts["pooling"] not in POOLINGS or facts["weights"] not in WEIGHTS or not facts["normalise"]:
        raise damaged(directory, "its pooling, weights or normalise is not one that this version knows")


def _open_session(directory: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # A thread a batch instead of several inside one: nobody waits for the slowest at the end of each operator.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # the arena never gives memory back
    options.log_severity_level = 3
    # Multiplies stored bytes out once, at load; otherwise onnxruntime computes with them, slower and less exactly.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    model = (directory / MODEL).read_bytes()
    # Weights in another file would be read unchecked, from wherever the graph says.
    if b"\n\x08location" in model:
        raise damaged(directory, f"{MODEL} keeps weights in another file")
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except _LOAD_ERRORS as error:
        raise damaged(directory, f"onnxruntime refuses {MODEL} ({type(error).__name__})") from error


def _fingerprint(facts: Mapping[str, Any]) -> str:
    decisive: dict[str, Any] = {key: facts[key] for key in ("pooling", "max_length", "lowercase", "normalise")}
    hashes = {name: facts["files"][name]["sha256"] for name in (MODEL, TOKENIZER)}
    return fingerprint({"kind": KIND, "files": hashes, **decisive})

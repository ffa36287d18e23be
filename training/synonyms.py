"""The held-out-synonym test: names that training never saw are asked for among all the others.

The index holds the names of a terminology without the hidden ones, and a query is a hidden name; it is answered right
by any name of any concept that bears it. Every system gets the same names and the same queries, in the form that the
encoder was trained on.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from medlink.corpora.records import LabeledMention
from medlink.errors import SourceError, UnknownValueError
from medlink.kb.records import NameRecord, Record
from medlink.text import ENCODER_TEXT_VERSION, MATCH_KEY_VERSION, encoder_text
from medlink.types import Concept, Name
from training.baselines import Dictionary
from training.heldout import HeldOut, held_out_queries, hold_out, split_hash, vocabulary_of
from training.names import NameRule
from training.protocols import Question


@dataclass(frozen=True, slots=True)
class SynonymTest:
    """Names to find, and by vocabulary what to ask for."""

    dictionary: Dictionary
    questions: dict[str, list[Question]]


def concepts_of_records(records: Iterable[Record]) -> list[Concept]:
    """Return the concepts of a terminology by id, with all their names and nothing else."""
    names: dict[str, list[Name]] = {}
    for record in records:
        if isinstance(record, NameRecord):
            name = Name(record.text, record.sab, record.tty, record.language, record.code, record.suppress != "N")
            names.setdefault(record.concept_id, []).append(name)
    return [Concept(id_, names[id_][0].text, tuple(names[id_])) for id_ in sorted(names)]


def split_of_pairs(
    manifest: Mapping[str, Any], texts: Callable[[], Iterable[str]], concepts: Sequence[Concept], rule: NameRule
) -> HeldOut:
    """Return the split that pairs were made with, as it applies to a terminology.

    That is the one which the pairs' manifest describes, if the terminology is theirs. Of another one, the names that
    the pairs show to training are not hidden either.

    Args:
        manifest: Of the pairs.
        texts: Gives every text of the pairs; called for another terminology than theirs.
        concepts: The terminology, whole.
        rule: The rule that the pairs were made by.

    Raises:
        SourceError: The pairs hide nothing, or compare texts as another version of medlink does.
    """
    facts = manifest["held_out"]
    if not facts["percent"]:
        raise SourceError("these pairs hide no name; make them with --held-out-percent", file="pairs")
    if facts["text"] != {"encoder_text": ENCODER_TEXT_VERSION, "match_key": MATCH_KEY_VERSION}:
        raise SourceError("these pairs were made by a version that reads texts otherwise; make them anew", file="pairs")
    own = hold_out(concepts, percent=facts["percent"], seed=facts["seed"], rule=rule)
    if own.fingerprint == facts["fingerprint"]:
        return own
    shown = (split_hash(text, own.seed) for text in texts())
    return replace(own, kept=own.kept | {number for number in shown if number < own.limit})


def synonym_test(
    concepts: Sequence[Concept],
    held_out: HeldOut,
    rule: NameRule,
    *,
    vocabularies: Collection[str] = (),
    per_vocabulary: int = 1000,
    seed: int = 0,
) -> SynonymTest:
    """Choose what to ask for and what to find.

    Args:
        concepts: The terminology, whole.
        held_out: Its split.
        rule: The rule that the pairs were made by.
        vocabularies: Ask for names of these only, among all names of the concepts that they have a name of.
        per_vocabulary: Most hidden names to ask for.
        seed: Which ones; each vocabulary's are the same whichever others are asked for.

    Raises:
        UnknownValueError: A vocabulary has no hidden name.
    """
    among = [c for c in concepts if not vocabularies or any(vocabulary_of(n) in vocabularies for n in c.names)]
    hidden: dict[str, set[str]] = {}
    bearers: dict[str, set[str]] = {}
    for query in held_out_queries(among, held_out, rule):
        form = encoder_text(query.text, lowercase=rule.lowercase)
        hidden.setdefault(query.vocabulary, set()).add(form)
        bearers.setdefault(form, set()).add(query.concept_id)
    for chosen in vocabularies:
        if chosen not in hidden:
            valid = {query.vocabulary for query in held_out_queries(concepts, held_out, rule)}
            raise UnknownValueError("source with hidden names", chosen, sorted(valid))
    asked = {
        name: [_question(form, bearers[form]) for form in _sample(name, forms, per_vocabulary, seed)]
        for name, forms in sorted(hidden.items())
        if not vocabularies or name in vocabularies
    }
    return SynonymTest(_shown(among, held_out, rule), asked)


def _shown(concepts: Iterable[Concept], held_out: HeldOut, rule: NameRule) -> Dictionary:
    owners: dict[str, list[frozenset[str]]] = {}
    for concept in concepts:
        ids = frozenset({concept.id})
        for form in dict.fromkeys(rule.forms(concept)):
            if not held_out.is_held_out(form):
                owners.setdefault(form, []).append(ids)
    return Dictionary(owners)


def _sample(name: str, forms: Collection[str], count: int, seed: int) -> list[str]:
    rng = np.random.default_rng([seed, *name.encode()])
    ordered = sorted(forms)
    return [ordered[at] for at in rng.permutation(len(ordered))[:count]]


def _question(form: str, concepts: Collection[str]) -> Question:
    gold = (tuple(sorted(concepts)),)
    return Question(LabeledMention("", 0, len(form), form, "", gold), (form,))

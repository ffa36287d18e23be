"""Measures what each step of the loose key finds and what it confuses, on a terminology and on annotated mentions.

    python benchmarks/loose_key.py --names medic-2012.csv --dictionary medic-2012 \
        --corpus ncbi-disease --data corpora --output benchmarks/results/loose-key-medic.json

Each name is hidden in turn and asked for: `right` counts those whose loose key leads to other names of their concept
only, `mixed` those that lead to other concepts too, `wrong` those that lead to other concepts alone. Terminologies
that hold one concept twice make `wrong` an upper bound. On mentions, the loose key answers where the match key finds
nothing; `new` counts those, `new_right` those of them that are right under the dictionary protocol.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from medlink.corpora.catalogue import read_split
from medlink.corpora.ids import candidate_ids
from medlink.kb.readers import open_reader
from medlink.kb.records import CodeRecord, NameRecord
from medlink.loose_key import STEP_NAMES, loose_key
from medlink.text import MATCH_KEY_STEPS, match_key
from medlink.types import Code
from training.evaluate import write_results
from training.protocols import Question, questions, read_typos

_OWN = tuple(name for name in STEP_NAMES if name not in MATCH_KEY_STEPS)


class Names:
    """The names of a terminology: the concepts and the ids of each, and the distinct ones by match key."""

    def __init__(self, file: Path) -> None:
        self.concepts: dict[str, set[str]] = {}
        codes: dict[str, list[Code]] = {}
        for record in open_reader(file).records():
            if isinstance(record, NameRecord) and record.suppress == "N":
                self.concepts.setdefault(record.text, set()).add(record.concept_id)
            elif isinstance(record, CodeRecord):
                codes.setdefault(record.concept_id, []).append(Code(record.sab, record.code))
        concepts = {concept for bearers in self.concepts.values() for concept in bearers}
        self.ids = {concept: candidate_ids(concept, codes.get(concept, ())) for concept in concepts}
        self.keys = {text: match_key(text) for text in self.concepts}

    def by(self, keys: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
        """Return the concepts under each key of (text, key) pairs."""
        found: dict[str, set[str]] = {}
        for text, key in keys:
            found.setdefault(key, set()).update(self.concepts[text])
        return found


def left_out_names(names: Names, loose: dict[str, str]) -> dict[str, int]:
    """Hide each distinct name in turn and count where its loose key leads."""
    own = names.by(names.keys.items())
    groups: dict[str, set[str]] = {}
    links: dict[str, set[str]] = {}
    for text, key in loose.items():
        groups.setdefault(key, set()).add(names.keys[text])
        links.setdefault(names.keys[text], set()).add(key)
    counts = {"right": 0, "mixed": 0, "wrong": 0}
    for name, keys in links.items():
        others = set().union(*(groups[key] for key in keys)) - {name}
        shared = sum(not own[name].isdisjoint(own[other]) for other in others)
        if others:
            counts["right" if shared == len(others) else "mixed" if shared else "wrong"] += 1
    return counts


def on_mentions(
    names: Names, loose: dict[str, str], asked: Sequence[Question], without: Sequence[str]
) -> dict[str, Any]:
    """Ask for mentions by match key, and by loose key where that finds nothing."""
    strict, variants = names.by(names.keys.items()), names.by(loose.items())
    right = answered = new = new_right = 0
    for question in asked:
        found = [strict.get(match_key(text)) for text in question.texts]
        loosely = [f or variants.get(loose_key(t, without=without)) for f, t in zip(found, question.texts, strict=True)]
        if not all(loosely):
            continue
        ids = [frozenset().union(*(names.ids[c] for c in concepts or ())) for concepts in loosely]
        is_right = all(each & question.mention.gold_ids for each in ids)
        answered, right = answered + 1, right + is_right
        if not all(found):
            new, new_right = new + 1, new_right + is_right
    return {
        "n": len(asked),
        "acc@1": round(100 * right / len(asked), 2),
        "precision": round(100 * right / answered, 2),
        "new": new,
        "new_right": new_right,
    }


def variants(every: bool) -> dict[str, tuple[str, ...]]:
    """Return what is compared: by name, the steps that are left out."""
    rows = {"match key": _OWN, "loose key": ()}
    if every:
        rows |= {f"only {step}": tuple(s for s in _OWN if s != step) for step in _OWN}
        rows |= {f"all but {step}": (step,) for step in _OWN}
    return rows


def measure(names: Names, asked: dict[str, list[Question]], every: bool) -> list[dict[str, Any]]:
    """Return one row for each variant and test."""
    rows = []
    for variant, without in variants(every).items():
        start = time.process_time()
        loose = {text: loose_key(text, without=without) for text in names.concepts}
        rate = round(len(loose) / (time.process_time() - start))
        row = {"system": variant, "test": "left-out names", "names": len(set(names.keys.values())), "names/s": rate}
        rows.append(row | left_out_names(names, loose))
        rows += [
            {"system": variant, "test": test} | on_mentions(names, loose, mentions, without)
            for test, mentions in asked.items()
        ]
        print(*rows[-1 - len(asked) :], sep="\n", flush=True)
    return rows


def main() -> None:
    """Read the arguments, measure and write the rows."""
    parser = argparse.ArgumentParser(description="Measure the steps of the loose key.")
    parser.add_argument("--names", type=Path, required=True, help="terminology, any form that `medlink kb load` reads")
    parser.add_argument("--dictionary", required=True, help="what rows call it")
    parser.add_argument("--corpus", action="append", default=[], help="a corpus of the catalogue, its dev split")
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--typos", type=Path, help="file of typo||correction lines")
    parser.add_argument("--brief", action="store_true", help="leave out the single steps")
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    typos = read_typos(arguments.typos) if arguments.typos else None
    asked = {
        f"{name} dev": list(questions(read_split(name, "dev", arguments.data), typos)) for name in arguments.corpus
    }
    rows = measure(Names(arguments.names), asked, not arguments.brief)
    rows = [{"dictionary": arguments.dictionary, **row} for row in rows]
    write_results(arguments.output, rows, command=["python", *sys.argv], final=False)


if __name__ == "__main__":
    main()

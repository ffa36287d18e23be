"""Sorts a sample of dev misses of the fused linker by cause, over the active index build; writes counts only.

python benchmarks/misses.py CORPORA benchmarks/results/misses-dev.json
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from app.serving import load_active_build
from app.settings import Settings
from index.store import IndexBuild
from medlink.corpora.catalogue import read_split
from medlink.corpora.ids import candidate_ids
from medlink.linking.letter_case import is_short_form
from medlink.types import LinkOptions, LinkResult, Mention
from training.hidden import concepts_of
from training.protocols import Question, questions

CORPORA = ("ncbi-disease", "bc5cdr-disease", "biored-disease")
SAMPLE = 100
OPTIONS = LinkOptions(top_k=60, threshold=0.0, composites=False, case=False)


def cause(build: IndexBuild, question: Question, results: list[LinkResult]) -> str:
    """Return why the answer to a mention is wrong; the first cause that holds."""
    gold = question.mention.gold_ids
    owners = concepts_of(build, gold)
    if not gold:
        return "the annotators found no concept"
    if not owners:
        return "the concept is not in the dictionary"
    if len(question.texts) > 1 or len(question.mention.gold) > 1:
        return "several concepts in one mention"
    best = results[0].candidates[0] if results[0].candidates else None
    if best is None or (is_short_form(question.mention.text) and question.texts[0] == question.mention.text.lower()):
        return "a short form that the document does not define"
    return _of_one(build, owners, results[0])


def _of_one(build: IndexBuild, owners: set[str], result: LinkResult) -> str:
    best = result.candidates[0]
    shown = {c.concept.id for c in result.candidates}
    up, down = _above(build, {best.concept.id}), _above(build, owners)
    if dict(best.channels).get("exact") == 1.0:
        return "the mention is the very name of the concept answered"
    if not owners & shown:
        return "the concept is not among the candidates"
    if owners & up:
        return "the annotators chose a broader concept"
    if best.concept.id in down:
        return "the annotators chose a narrower concept"
    if any(dict(c.channels).get("exact") for c in result.candidates if c.concept.id in owners):
        return "an exact name was passed over"
    return "the concept comes later among the candidates"


def _above(build: IndexBuild, ids: set[str]) -> set[str]:
    """Return the concepts up to three levels above some."""
    found: set[str] = set()
    level = set(ids)
    for _ in range(3):
        level = {above for concept in build.concepts.concepts(sorted(level)).values() for above in concept.broader}
        found |= level
    return found - ids


def misses(build: IndexBuild, name: str, data: Path) -> list[tuple[Question, list[LinkResult]]]:
    """Return the mentions of a dev split whose first concepts are not all right, with the answers."""
    wrong = []
    for question in questions(read_split(name, "dev", data)):
        results = build.linker.link([Mention(text) for text in question.texts], OPTIONS)
        gold = question.mention.gold_ids
        firsts = [candidate_ids(c.concept.id, c.concept.codes) for r in results for c in r.candidates[:1]]
        if len(firsts) < len(results) or not all(ids & gold for ids in firsts):
            wrong.append((question, results))
    return wrong


def main() -> None:
    """Read the arguments and write the counts."""
    parser = argparse.ArgumentParser(description="Sort dev misses of the fused linker by cause.")
    parser.add_argument("data", type=Path, help="folder of the corpora")
    parser.add_argument("output", type=Path, help="JSON to write")
    arguments = parser.parse_args()
    build = load_active_build(Settings())
    rows: list[dict[str, Any]] = []
    for name in CORPORA:
        wrong = misses(build, name, arguments.data)
        drawn = np.random.default_rng(0).permutation(len(wrong))[:SAMPLE]
        causes = Counter(cause(build, *wrong[at]) for at in drawn)
        rows += [
            {"corpus": name, "split": "dev", "misses": len(wrong), "sample": len(drawn), "cause": c, "count": n}
            for c, n in causes.most_common()
        ]
    facts = {"command": "python benchmarks/misses.py CORPORA benchmarks/results/misses-dev.json", "rows": rows}
    arguments.output.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")
    for row in rows:
        print(f"{row['corpus']:16} {row['count']:4} of {row['sample']}  {row['cause']}")


if __name__ == "__main__":
    main()

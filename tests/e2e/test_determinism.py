"""The same mention gets the same answer in every process, in every order and in batches of every size."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from index.build import Content, build_index
from index.store import BuildStore
from medlink.types import Code, Concept, Name, SemanticType

ENCODER = Path(__file__).parents[2] / "artefacts/encoder"
BATCHES = ("1", "7", "all")

# Concepts with their names: homonyms, names that differ in a number, a sign, a letter or their case, and short forms.
NAMES: tuple[tuple[str, ...], ...] = (
    ("Cold", "low temperature"),
    ("Common cold", "cold", "acute nasopharyngitis"),
    ("Chronic obstructive lung disease", "COLD", "COPD"),
    ("Diabetes mellitus type 1", "type 1 diabetes", "T1D"),
    ("Diabetes mellitus type 2", "type 2 diabetes", "T2D"),
    ("Diabetes mellitus", "diabetes", "DM"),
    ("Myotonic dystrophy", "dystrophia myotonica", "DM"),
    ("Dermatomyositis", "DM"),
    ("Acquired immunodeficiency syndrome", "AIDS"),
    ("Hearing aid", "aids"),
    ("Amyotrophic lateral sclerosis", "ALS"),
    ("Breast cancer", "breast neoplasm", "cancer of breast"),
    ("Ovarian cancer", "ovarian neoplasm", "cancer of ovary"),
    ("Breast and ovarian cancer syndrome",),
    ("Spinocerebellar ataxia 1", "SCA1"),
    ("Spinocerebellar ataxia 2", "SCA2"),
    ("Spinocerebellar ataxia 3", "SCA3"),
    ("Spinocerebellar ataxia", "SCA"),
    ("Sickle cell anaemia", "SCA", "sickle-cell anemia"),
    ("Beta-thalassaemia", "β-thalassemia", "beta thalassemia"),
    ("Alpha-thalassaemia", "α-thalassemia"),
    ("Lung carcinoma", "carcinoma of lung"),
    ("Lung carcinoma, small cell", "carcinoma, small cell, lung"),
    ("Lung disease", "disease of lung"),
    ("Lung diseases", "pulmonary disease"),
)
CONTEXT = "Dystrophia myotonica (DM) and spinocerebellar ataxia (SCA) were seen; DM and SCA run in families."
MENTIONS: tuple[dict[str, object], ...] = (
    *({"text": name} for names in NAMES for name in names),
    *({"text": name.lower() + "s"} for names in NAMES for name in names[:1]),
    *({"text": text, "context": CONTEXT} for text in ("DM", "SCA", "SCA type 2")),
    {"text": "breast or ovarian cancer"},
    {"text": "breast, lung and ovarian cancers"},
    {"text": "typ 1 diabetis"},
    {"text": "C0000007"},
    {"text": "MESH:D000003"},
    {"text": "###"},
    {"text": ""},
    {"text": "aeroplane"},
    {"text": "Cold"},
)

ASK = """
import json, sys
from app.answers import ResultOut
from app.schemas import Options
from index.store import BuildStore
from medlink.types import CHANNELS, LinkOptions, Mention
from pathlib import Path

asked = json.load(sys.stdin)
linker = BuildStore(Path(asked["builds"])).open(asked["build"]).linker
options = LinkOptions(channels=CHANNELS)
mentions = [Mention(**mention) for mention in asked["mentions"]]
answers = {}
for batch, size in (("1", 1), ("7", 7), ("all", len(mentions))):
    results = [r for at in range(0, len(mentions), size) for r in linker.link(mentions[at : at + size], options)]
    shown = [ResultOut.of(result, Options(explain=True)) for result in results]
    answers[batch] = [answer.model_dump(mode="json", exclude_unset=True) for answer in shown]
json.dump(answers, sys.stdout)
"""

Answers = dict[str, list[dict]]


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> tuple[Path, str]:
    """Where a build with the shipped encoder is, and its id."""
    directory = tmp_path_factory.mktemp("deterministic")
    concepts = [
        Concept(
            f"C{number:07}",
            names[0],
            tuple(Name(text, ("MESH", "MONDO")[number % 2]) for text in names),
            (SemanticType("T047", "Disease or Syndrome"),),
            (Code("MESH", f"D{number // 2:06}"),),
        )
        for number, names in enumerate(NAMES)
    ]
    content = Content(concepts, (), (), {"tiny": "1"}, len(concepts))
    return directory, build_index(content, ENCODER, BuildStore(directory), recipe="flat")


def ask(index: tuple[Path, str], hash_seed: int, order: list[int]) -> Answers:
    """Return the answers of a new process for every batch size, in the order of `MENTIONS`."""
    builds, build = index
    sent = {"builds": str(builds), "build": build, "mentions": [MENTIONS[place] for place in order]}
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(sent),
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        cwd=Path(__file__).parents[2],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    places = sorted(range(len(order)), key=order.__getitem__)
    return {batch: [answers[place] for place in places] for batch, answers in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def answers(index) -> dict[str, Answers]:
    """The answers of two processes; the second reads the mentions in another order."""
    order = list(range(len(MENTIONS)))
    shuffled = random.Random(0).sample(order, len(order))
    return {"first": ask(index, 1, order), "second": ask(index, 2, shuffled)}


@pytest.mark.parametrize(
    ("process", "batch"), [(p, b) for p in ("first", "second") for b in BATCHES if (p, b) != ("first", "all")]
)
def test_an_answer_depends_on_neither_process_nor_order_nor_batch(answers, process, batch):
    assert answers[process][batch] == answers["first"]["all"]


def test_the_mentions_reach_what_could_differ(answers):
    found = {answer["text"]: answer for answer in answers["first"]["all"]}
    of_status = [answer["status"] for answer in answers["first"]["all"]]
    alike = [
        a["score"] == b["score"]
        for answer in found.values()
        for a, b in zip(answer["candidates"], answer["candidates"][1:], strict=False)
    ]

    assert {"linked", "ambiguous", "nil"} <= set(of_status)
    assert any(alike)
    assert any("parts" in answer for answer in found.values())
    assert any("expansion" in answer for answer in found.values())


def test_the_same_mention_twice_gets_one_answer(answers):
    twice = [answer for answer in answers["second"]["7"] if answer["text"] == "Cold"]

    assert len(twice) == 2
    assert twice[0] == twice[1]

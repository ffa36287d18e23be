import json
import subprocess
import sys
from pathlib import Path

import pytest

from medlink.corpora.catalogue import read_split
from medlink.corpora.records import LabeledDocument, LabeledMention
from medlink.errors import SourceError
from medlink.kb.records import CodeRecord, NameRecord
from training.baselines import Dictionary, Trigrams
from training.evaluate import Task, answerable, earlier_documents, rank_all, score, subsets, write_results
from training.protocols import (
    CandidateIds,
    Question,
    as_names,
    first_right,
    names_of_mentions,
    questions,
    read_typos,
)

GOUT, FEVER, COUGH = "MESH:D006073", "MESH:D005334", "MESH:D003371"
NAMES = [
    NameRecord("MESH:D006073", "Gout", "MESH"),
    NameRecord("MESH:D006073", "Gouty arthritis, chronic", "MESH"),
    NameRecord("MESH:D006073", "old name of gout", "MESH", suppress="O"),
    CodeRecord("MESH:D006073", "OMIM", "138900"),
    NameRecord("MESH:D005334", "Fever", "MESH"),
    NameRecord("MESH:D003371", "Cough", "MESH"),
    NameRecord("C0000001", "fever!", "TEST"),
]


def document(text: str, *labeled: tuple[str, tuple[tuple[str, ...], ...]]) -> LabeledDocument:
    mentions = tuple(
        LabeledMention("1", text.index(mention), text.index(mention) + len(mention), mention, "Disease", gold)
        for mention, gold in labeled
    )
    return LabeledDocument("1", text, mentions)


@pytest.fixture
def corpora(tmp_path: Path) -> Path:
    folder = tmp_path / "corpora" / "ncbi-disease"
    folder.mkdir(parents=True)
    block = "{0}|t|{1}\n{0}|a|\n{0}\t0\t{2}\t{1}\tSpecificDisease\t{3}\n\n"
    splits = {"train": [("gout", "D006073")], "develop": [("Gout", "D006073"), ("fever", "D005334"), ("pox", "D1")]}
    for split, labeled in splits.items():
        lines = (block.format(i, text, len(text), ids) for i, (text, ids) in enumerate(labeled, 1))
        (folder / f"NCBI{split}set_corpus.txt").write_text("".join(lines))
    return folder.parent


def test_a_mention_is_bared_expanded_corrected_and_split():
    text = "Chronic gouty arthritis (CGA) and nausea. CGA; fevre, Cough!; nausea and vomiting"
    asked = questions([document(text, ("CGA", ((GOUT,),)), ("fevre, Cough!", ()), ("nausea and vomiting", ()))])
    corrected = questions([document("fevre", ("fevre", ()))], {"fevre": "fever"})

    assert [q.texts for q in asked] == [("chronic gouty arthritis",), ("fevre cough",), ("nausea", "vomiting")]
    assert [q.texts for q in corrected] == [("fever",)]


def test_every_part_must_have_a_right_name_and_the_worst_part_decides_the_rank():
    composite = Question(document("x", ("x", ((FEVER,), (COUGH,)))).mentions[0], ("fever", "cough"))
    fever, cough, gout = frozenset({FEVER}), frozenset({COUGH, "C1"}), frozenset({GOUT})

    assert first_right(composite, [[fever], [cough]]) == 1
    assert first_right(composite, [[fever], [gout, gout, cough]]) == 3
    assert first_right(composite, [[fever], [gout]]) == 0
    assert first_right(composite, [[], [cough]]) == 0


def test_a_mention_without_gold_is_wrong_whatever_is_answered():
    nil = Question(document("x", ("x", ())).mentions[0], ("x",))

    assert first_right(nil, [[frozenset({"-1", "-", "MESH:D006073"})]]) == 0


def test_concepts_of_one_name_are_one_name_where_the_best_of_them_stands():
    found = [
        CandidateIds("cough", frozenset({"a"})),
        CandidateIds("Fever", frozenset({"b"})),
        CandidateIds("Coughing", frozenset({"c"})),
        CandidateIds("fever!", frozenset({"d", "e"})),
        CandidateIds("cough", frozenset({"f"})),
    ]

    assert as_names(found) == [{"a", "f"}, {"b", "d", "e"}, {"c"}]


def test_names_of_nothing_but_signs_are_not_one_name():
    found = [
        CandidateIds("+", frozenset({"a"})),
        CandidateIds("-", frozenset({"b"})),
        CandidateIds("+", frozenset({"c"})),
    ]

    assert as_names(found) == [{"a", "c"}, {"b"}]


def test_a_name_of_the_dictionary_carries_the_ids_of_all_its_concepts_and_their_codes():
    dictionary = Dictionary.read(NAMES)

    assert dictionary.exact(["fever", "gout", "old name of gout"], 5) == [["fever"], ["gout"], []]
    assert dictionary.ids_of(["fever", "gout"]) == [{FEVER, "UMLS:C0000001"}, {GOUT, "OMIM:138900"}]
    assert dictionary.ids == {GOUT, "OMIM:138900", FEVER, COUGH, "UMLS:C0000001"}


def test_concepts_that_share_a_name_stay_apart_and_come_once():
    dictionary = Dictionary.read(NAMES)
    names = ["gout", "gouty arthritis chronic", "fever"]

    assert dictionary.concepts_of(names, 5) == [{GOUT, "OMIM:138900"}, {FEVER}, {"UMLS:C0000001"}]
    assert dictionary.concepts_of(names, 2) == [{GOUT, "OMIM:138900"}, {FEVER}]


def test_added_names_stand_last_and_add_ids_to_a_name_that_is_there():
    dictionary = Dictionary.read(NAMES)

    longer = dictionary.extended({"gout": frozenset({COUGH}), "podagra": frozenset({GOUT})})

    assert longer.names == [*dictionary.names, "podagra"]
    assert longer.ids_of(["gout", "podagra"]) == [{GOUT, "OMIM:138900", COUGH}, {GOUT}]
    assert dictionary.ids_of(["gout"]) == [{GOUT, "OMIM:138900"}]


def test_mentions_become_names_with_all_ids_that_they_were_labeled_with():
    def question(texts: tuple[str, ...], *gold: tuple[str, ...]) -> Question:
        return Question(document("x", ("x", gold)).mentions[0], texts)

    learnt = names_of_mentions(
        [
            question(("pyrexia",), (FEVER,)),
            question(("pyrexia",), (FEVER, "OMIM:1")),
            question(("flu",), (FEVER,), (COUGH,)),
            question(("hot", "cold"), (FEVER,), (COUGH,)),
            question(("one", "two"), (FEVER,), (GOUT,), ()),
            question(("hot", "pox"), (), (GOUT,)),
            question(("nothing",)),
        ]
    )

    assert learnt == {
        "pyrexia": {FEVER, "OMIM:1"},
        "flu": {FEVER, COUGH},
        "hot": {FEVER},
        "cold": {COUGH},
        "one": {FEVER, GOUT},
        "two": {FEVER, GOUT},
        "pox": {GOUT},
    }


def test_trigrams_agree_with_cosines_worked_out_one_by_one():
    texts = ["gout", "fevers", "arthritis gouty", "zzz", "fevers"]
    names = Dictionary.read(NAMES).names
    trigrams = Trigrams(names)

    answers = trigrams.search(texts, 3)

    vectorizer = trigrams._vectorizer
    for text, found in zip(texts, answers, strict=True):
        cosines = {
            name: float(vectorizer.transform([text]).multiply(vectorizer.transform([name])).sum()) for name in names
        }
        best = sorted((name for name in cosines if cosines[name] > 0), key=lambda name: -round(cosines[name], 9))
        assert found == best[:3]


def test_names_that_are_permutations_of_one_another_come_in_the_order_of_the_dictionary():
    (found,) = Trigrams(["a ab b", "b a ab", "ab b a"]).search(["b ab a"], 2)

    assert found == ["a ab b", "b a ab"]


def test_answerable_mentions_have_every_part_in_the_dictionary_and_some_gold():
    gold = [((GOUT,),), ((GOUT,), (COUGH,)), ((GOUT, "OMIM:1"),), ((GOUT,), ()), ()]
    asked = [Question(document("x", ("x", parts)).mentions[0], ("x",)) for parts in gold]

    def known(ids):
        return {GOUT} & set(ids)

    assert answerable(asked, known) == [True, False, True, False, False]
    assert answerable(asked, known, nil=True) == [True, False, True, True, True]


def test_each_text_is_asked_once_in_batches_of_bounded_size():
    gold = ((GOUT,),)
    asked = [Question(document("x", ("x", gold)).mentions[0], (f"text {i % 450}",)) for i in range(900)]
    batches: list[list[str]] = []

    def ranker(texts, k):
        batches.append(list(texts))
        return [[frozenset({GOUT})]] * len(texts)

    assert rank_all(asked, ranker, 20) == [1] * 900
    assert [len(batch) for batch in batches] == [200, 200, 50]


def test_unseen_mentions_are_new_and_hard_ones_not_even_a_name(corpora):
    asked = list(questions(read_split("ncbi-disease", "dev", corpora)))
    exact = Dictionary.read(NAMES).exact
    dev, train = (earlier_documents(Task("ncbi-disease", split, "test"), corpora) for split in ("dev", "train"))

    found = subsets(asked, dev, exact)

    assert found == {"all": [True] * 3, "unseen": [False, True, True], "hard": [False, False, True]}
    assert list(subsets(asked, train, exact)) == ["all"]


def test_rows_are_in_percent_with_everything_that_a_table_needs():
    task = Task("ncbi-disease", "dev", "MEDIC")
    members = {"all": [True] * 4, "unseen": [False, False, True, True], "hard": [False] * 4}

    everything, unseen = score(task, "dense", "abc", [1, 1, 2, 0], [True, True, True, False], members)

    assert everything == {
        "corpus": "ncbi-disease",
        "split": "dev",
        "dictionary": "MEDIC",
        "protocol": "dictionary",
        "subset": "all",
        "system": "dense",
        "encoder": "abc",
        "n": 4,
        "coverage": 75.0,
        "acc@1": 50.0,
        "acc@5": 75.0,
        "mrr": 62.5,
        "ci95": [0.0, 100.0],
    }
    assert (unseen["subset"], unseen["n"], unseen["acc@1"], unseen["coverage"]) == ("unseen", 2, 0.0, 50.0)


def test_results_say_how_they_were_made_and_nothing_of_this_machine(tmp_path):
    output = tmp_path / "deep" / "results.json"
    command = ["medlink", "eval", "--data", str(tmp_path / "corpora"), f"--names={tmp_path}/medic.csv"]

    write_results(output, [{"n": 1}], command=command, final=True)

    facts = json.loads(output.read_text())
    assert list(facts) == ["command", "commit", "date", "machine", "final", "rows"]
    assert facts["command"] == "medlink eval --data corpora --names=medic.csv"
    assert facts["final"] is True
    assert str(tmp_path) not in output.read_text()


@pytest.mark.parametrize("line", ["fevre|fever", "fevre||", "||fever"])
def test_a_typo_list_of_another_form_is_refused_by_line(tmp_path, line):
    (tmp_path / "typos.txt").write_text(f"hart||heart\n\n{line}\n")

    with pytest.raises(SourceError, match=r"typos\.txt:3"):
        read_typos(tmp_path / "typos.txt")


def test_a_typo_list_that_is_not_there_says_so(tmp_path):
    with pytest.raises(SourceError, match="No such file"):
        read_typos(tmp_path / "typos.txt")


def test_evaluation_runs_on_an_install_without_torch():
    code = (
        "import sys; sys.modules.update(torch=None, transformers=None); "
        "import training.scoring, training.channels, training.synonyms, medlink.client"
    )

    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])

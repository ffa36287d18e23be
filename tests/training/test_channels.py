"""An index build is scored alike in this process and over HTTP, under every protocol that it can be asked by."""

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from starlette.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from index.store import IndexBuild
from medlink.client import Client
from medlink.corpora.records import Gold, LabeledDocument, LabeledMention
from medlink.kb.curation import CurationState
from training.channels import ChannelSource, Reply, of_build, of_service
from training.evaluate import Task, answerable
from training.protocols import CandidateIds, Question, questions
from training.scoring import CorpusTest, score_systems
from training.strict import questions_as_written

CHOSEN = {"exact": ("exact",), "exact+dense": ("exact", "dense")}
ASTHMA, ATTACK, ITCHING, COLD = ("MESH:D001249",), ("MESH:D009203",), ("MONDO:0099999",), ("MESH:D003139",)


@pytest.fixture(scope="module")
def over_http(build, tmp_path_factory) -> Iterator[Client]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), max_context_chars=30)
    with TestClient(create_app(settings, build=build)) as service:

        def handle(request: httpx.Request) -> httpx.Response:
            reply = service.request(
                request.method, str(request.url.raw_path, "ascii"), content=request.content, headers=request.headers
            )
            return httpx.Response(reply.status_code, content=reply.content)

        with Client("http://service", transport=httpx.MockTransport(handle)) as client:
            yield client


@pytest.fixture(params=["in process", "over HTTP"])
def source(request, build, over_http) -> ChannelSource:
    if request.param == "over HTTP":
        return of_service(over_http, CHOSEN, encoder="tiny")
    return of_build(build, CHOSEN, longest_context=30, encoder="tiny")


def document(text: str, *labeled: tuple[str, Gold]) -> LabeledDocument:
    mentions = (LabeledMention("1", text.index(m), text.index(m) + len(m), m, "Disease", gold) for m, gold in labeled)
    return LabeledDocument("1", text, tuple(mentions))


TEXT = document(
    "Heart Attacks and an asthma; heart attack in a cold after many long days of scratching, ###",
    ("Heart Attacks", (ATTACK,)),
    ("heart attack", (ITCHING,)),
    ("cold", (COLD,)),
    ("asthma", (ASTHMA, ATTACK)),
    ("###", ()),
)


def ranks(source: ChannelSource, protocol: str, asked: list[Question]) -> dict[str, list[int]]:
    return {system.name: system.ranks(asked, 5) for system in source.systems(protocol, {})}


def test_systems_are_called_what_was_chosen_and_those_that_are_dense_name_the_encoder(source):
    found = [(system.name, system.encoder) for system in source.systems("dictionary", {})]

    assert found == [("exact", None), ("exact+dense", "tiny")]
    assert source.label == "MONDO"


def test_the_dictionary_protocol_puts_concepts_of_one_name_together(source):
    found = ranks(source, "dictionary", list(questions([TEXT])))

    # "Heart Attacks" is a variant; "cold" names a finding and a disease, which are one name here.
    assert found["exact"] == [1, 0, 1, 1, 0]
    assert found["exact+dense"][0] == 1


def test_the_strict_protocol_keeps_them_apart_and_takes_nil_for_an_answer(source):
    found = ranks(source, "strict", list(questions_as_written([TEXT])))

    assert found["exact"] == [1, 0, 2, 0, 1]
    assert found["exact+dense"][0] == 1


def test_under_the_strict_protocol_the_document_defines_short_forms_and_the_linker_splits(source):
    short = document("heart attack (HA) HA", ("HA", (ATTACK,)))
    both = document("asthma and lung disease", ("asthma and lung disease", (ASTHMA, ("MONDO:0005087",))))
    one = document("asthma and lung disease", ("asthma and lung disease", (ASTHMA,)))

    assert ranks(source, "strict", list(questions_as_written([short, both, one])))["exact"] == [1, 1, 0]


def test_texts_that_a_protocol_has_split_itself_are_not_split_again(source):
    asked = [Question(TEXT.mentions[0], ("asthma and lung disease",))]

    assert ranks(source, "dictionary", asked)["exact"] == [0]


def test_names_of_the_build_and_its_ids_are_known(source):
    assert [bool(names) for names in source.exact(["Heart Attack", "heart attacks"], 1)] == [True, False]
    assert source.known(["MESH:D001249", "UMLS:C0027051", "MESH:D000000"]) == {"MESH:D001249", "UMLS:C0027051"}
    assert answerable(list(questions([TEXT])), source.known) == [True, True, True, True, False]


def test_rows_say_what_else_decides_the_answers(build):
    corrected = build.curated(CurationState(revision=3))
    learned = replace(build, manifest={**build.manifest, "fusion": {"fingerprint": "f00d"}})
    test = CorpusTest(Task("ours", "dev", "", "dictionary"), list(questions([TEXT])), [], {})

    def said(of: IndexBuild) -> list[tuple]:
        rows = score_systems(test, of_build(of, CHOSEN, longest_context=30), 5)
        return [(row["system"], row.get("curation"), row.get("fusion")) for row in rows]

    assert said(build) == [("exact", None, None), ("exact+dense", None, None)]
    assert said(corrected) == [("exact", 3, None), ("exact+dense", 3, None)]
    assert said(learned) == [("exact", None, "f00d"), ("exact+dense", None, "f00d")]


def test_nothing_can_be_added_to_a_build(source):
    with pytest.raises(ValueError, match="nothing can be added"):
        list(source.systems("paper", {"gout": frozenset({"MESH:D006073"})}))


def test_a_long_document_is_sent_as_far_as_the_service_takes_it(source):
    long = document("cough. " * 40 + "Asthma" + " and so on." * 40, ("Asthma", (ASTHMA,)))

    assert ranks(source, "strict", list(questions_as_written([long])))["exact"] == [1]


def test_a_reply_that_is_no_answer_is_not_nil():
    a, b = (CandidateIds("x", frozenset({id_})) for id_ in "ab")

    assert Reply("error").answer.concepts == (frozenset(),)
    assert Reply("nil", (a,)).answer.concepts == ()
    assert Reply("linked", (a, b)).answer.concepts == ({"a"}, {"b"})
    split = Reply("linked", (a,), (Reply("linked", (b, a)), Reply("nil"), Reply("nil", (a,))))
    assert split.answer.parts == ({"b"}, frozenset(), frozenset())

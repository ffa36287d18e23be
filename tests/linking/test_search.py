"""Every channel is asked once for every text, and parts of a text are names too."""

import pytest

from medlink.errors import UnknownValueError
from medlink.linking.ranking import Query
from medlink.linking.search import Channels
from medlink.types import LinkOptions, Retrieval


class Recorded:
    """A channel that writes down what it is asked."""

    def __init__(self, channel):
        self._channel = channel
        self.asked = []

    def search(self, mentions, options) -> list[Retrieval]:
        self.asked.append((list(mentions), options))
        return self._channel.search(mentions, options)


@pytest.fixture
def recorded(build):
    return {c: Recorded(r.under(build.overlay)) for c, r in build.retrievers.items()}


@pytest.fixture
def channels(recorded):
    return Channels(dict(reversed(recorded.items())))


def test_channels_come_in_the_order_of_trust(channels, build):
    assert channels.names == ("exact", "dense", "lexical")
    assert (channels.has_exact, Channels({"dense": build.dense}).has_exact) == (True, False)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(("lexical", "dense", "exact"), True), (("exact", "dense"), False), (("dense",), False), ((), False)],
)
def test_all_are_used_only_if_the_build_has_and_the_options_name_them(channels, build, chosen, expected):
    options = LinkOptions(channels=chosen)

    assert channels.all_used(options) is expected
    assert not Channels({"exact": build.retrievers["exact"], "dense": build.dense}).all_used(options)


def test_equal_texts_are_searched_once_whatever_is_around_them(channels, recorded):
    queries = [Query("cold"), Query("asthma"), Query("cold", "a cold nose")]

    found = channels.search(queries, LinkOptions(top_k=2), deep=7)

    assert [f.query for f in found] == queries
    assert found[0].retrievals == found[2].retrievals != found[1].retrievals
    for channel in recorded.values():
        ((texts, options),) = channel.asked
        assert (texts, options.top_k) == (["cold", "asthma"], 7)


def test_a_channel_that_is_not_asked_for_is_not_asked(channels, recorded):
    (found,) = channels.search([Query("cold")], LinkOptions(channels=("lexical",)), deep=5)

    assert list(found.retrievals) == ["lexical"]
    assert not recorded["dense"].asked
    with pytest.raises(UnknownValueError, match="valid: exact, dense, lexical"):
        channels.search([Query("cold")], LinkOptions(channels=()), deep=5)


def with_parts(channels, *texts, **options):
    chosen = LinkOptions(**options)
    found = channels.with_parts(channels.search([Query(text) for text in texts], chosen, deep=5), chosen)
    return [[(part, [r.concept_id for r in retrieval.found]) for part, retrieval in f.parts] for f in found]


def test_names_within_a_text_that_is_none_are_found(channels):
    assert with_parts(channels, "severe heart attack of a cold", "asthma", "zzz") == [
        [("heart attack", ["C0027051"]), ("cold", ["HP:0000001", "MESH:D003139"])],
        [],
        [],
    ]


def test_parts_obey_filters_and_are_the_very_name(channels):
    assert with_parts(channels, "bad cold", sabs=frozenset({"MESH"})) == [[("cold", ["MESH:D003139"])]]
    assert with_parts(channels, "bad heart attacks") == with_parts(channels, "bad heart attacks", variants=False)


def test_parts_of_all_texts_are_looked_up_together(channels, recorded):
    with_parts(channels, "bad cold", "bad asthma")

    (_, (parts, options)) = recorded["exact"].asked
    assert (parts, options.variants) == (["asthma", "bad", "cold"], False)


def test_a_text_is_a_name_in_its_own_case_with_or_without_the_filters(channels):
    options = LinkOptions(semantic_types=frozenset({"T184"}))

    assert channels.named(["cold", "heart attack", "heart attacks of a cold", ""], options) == {"cold", "heart attack"}
    assert channels.named([], options) == set()


def test_without_an_exact_channel_nothing_is_a_name(build):
    assert Channels({"dense": build.dense}).named(["cold"], LinkOptions()) == set()

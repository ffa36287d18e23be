"""What speaks for a concept, from what every channel found and from parts of the mention."""

from medlink.linking.evidence import gather, parts_of
from medlink.types import Name, Retrieval, Retrieved


def found(concept: str, text: str, score: float = 0.5, words: tuple[str, ...] = ()) -> Retrieved:
    return Retrieved(concept, Name(text, "T"), score, words=words or tuple(text.split()))


def test_a_text_of_one_word_or_none_has_no_parts():
    assert list(parts_of("asthma")) == list(parts_of("")) == []


def test_parts_of_a_text_that_is_not_one_run_of_words_include_all_its_words():
    assert list(parts_of(" acute  asthma")) == ["acute", "acute asthma", "asthma"]


def test_of_a_long_text_only_the_last_words_are_taken_apart():
    parts = list(parts_of(" ".join(f"w{i}" for i in range(20))))

    assert len(parts) == 12 * 13 // 2
    assert {part.split()[0] for part in parts} == {f"w{i}" for i in range(8, 20)}


def test_a_concept_has_its_place_and_name_in_every_channel_that_found_it():
    dense = Retrieval((found("X:1", "asthma", 0.9), found("X:2", "cold", 0.8)))
    lexical = Retrieval((found("X:2", "colds", 0.7),))

    evidence = gather("cold asthma", {"dense": dense, "lexical": lexical}, ())

    assert {id_: sorted(e.channels) for id_, e in evidence.items()} == {"X:1": ["dense"], "X:2": ["dense", "lexical"]}
    assert evidence["X:2"].channels == {"dense": (1, dense.found[1]), "lexical": (0, lexical.found[0])}
    assert [r.name.text for r in evidence["X:2"].names] == ["cold", "colds"]
    assert evidence["X:1"].part is None


def test_a_concept_that_a_channel_finds_twice_keeps_the_better_place():
    twice = Retrieval((found("X:1", "asthma", 0.9), found("X:1", "asthma attack", 0.8)))

    assert gather("asthma", {"dense": twice}, ())["X:1"].channels["dense"] == (0, twice.found[0])


def test_an_exact_name_stands_alone():
    exact, dense = found("X:1", "cold", 1.0), found("X:1", "common cold", 0.9)

    evidence = gather("cold", {"exact": Retrieval((exact,)), "dense": Retrieval((dense,))}, ())["X:1"]

    assert evidence.names == [exact]


def test_a_name_within_the_mention_speaks_for_its_concept_too():
    cancer, breast = found("X:1", "cancer", 1.0), found("X:2", "breast", 1.0)
    parts = [("breast", Retrieval((breast,))), ("cancer", Retrieval((cancer,)))]

    evidence = gather("breast cancer", {"dense": Retrieval((cancer,))}, parts)

    assert (evidence["X:1"].part.words, evidence["X:1"].part.ends) == (("cancer",), True)
    assert (evidence["X:2"].part.words, evidence["X:2"].part.ends) == (("breast",), False)
    assert (evidence["X:2"].channels, evidence["X:2"].names) == ({}, [breast])


def test_of_several_parts_that_name_a_concept_the_longest_counts_and_then_the_one_at_the_end():
    one, other, long = found("X:1", "cancer"), found("X:1", "tumour"), found("X:1", "breast cancer")
    first = [("cancer", Retrieval((one,))), ("tumour", Retrieval((other,)))]

    by_end = gather("cancer tumour", {}, first)["X:1"]
    by_length = gather("breast cancer tumour", {}, [*first, ("breast cancer", Retrieval((long,)))])["X:1"]

    assert by_end.part.retrieved == other
    assert (by_length.part.retrieved, by_length.part.ends) == (long, False)
    assert gather("cancer tumour", {}, first[::-1])["X:1"].part == by_end.part

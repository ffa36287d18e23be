"""Encoders over names in memory find what comparing one by one finds."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from medlink.encoders.hashing import HashingEncoder
from medlink.text import encoder_text
from medlink.types import Embeddings
from training.dense import DenseNames, EncodedNames

TEXTS = st.lists(st.text("ab c", max_size=6), min_size=1, max_size=8)


class Counting(HashingEncoder):
    """Notes what it was asked to encode."""

    def __init__(self) -> None:
        super().__init__(dim=32)
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> Embeddings:
        self.asked += texts
        return super().encode(texts)


@settings(deadline=None)
@given(names=TEXTS.map(lambda names: list(dict.fromkeys(names))), texts=TEXTS, k=st.integers(1, 9))
def test_agrees_with_cosines_taken_one_by_one(names, texts, k):
    encoder = HashingEncoder(dim=32)

    found = DenseNames(names, EncodedNames(encoder)).search(texts, k)

    def vector(text: str) -> np.ndarray:
        return encoder.encode([encoder_text(text, lowercase=True)]).vectors[0].astype(np.float64)

    for text, near in zip(texts, found, strict=True):
        cosines = {name: round(float(vector(text) @ vector(name)), 6) for name in names}
        best = sorted(names, key=lambda name: -cosines[name])[:k] if text.strip() else []
        assert len(near) == len(best)
        # A cosine may round up in 32 bits and down in 64.
        assert np.allclose([cosines[name] for name in near], [cosines[name] for name in best], atol=2e-6)


def test_equal_vectors_stand_in_the_order_of_the_names():
    dense = DenseNames(["gout", "Fever", "fever", "FEVER "], EncodedNames(HashingEncoder(dim=32)))

    assert dense.search(["fever"], 3) == [["Fever", "fever", "FEVER "]]


def test_a_name_is_encoded_once_for_all_dictionaries_that_have_it():
    encoder = Counting()
    encoded = EncodedNames(encoder)

    DenseNames(["gout", "Gout", "fever"], encoded)
    longer = DenseNames(["gout", "Gout", "fever", "cough"], encoded)

    assert encoder.asked == ["gout", "fever", "cough"]
    assert longer.search(["cough"], 1) == [["cough"]]


def test_equal_texts_are_encoded_once_and_each_answered():
    encoder = Counting()
    dense = DenseNames(["gout", "fever"], EncodedNames(encoder))
    encoder.asked.clear()

    assert dense.search(["fever", "gout", "Fever"], 1) == [["fever"], ["gout"], ["fever"]]
    assert encoder.asked == ["fever", "gout"]


def test_progress_is_told_to_the_end():
    told: list[tuple[int, int]] = []

    EncodedNames(HashingEncoder(dim=8), lambda done, total: told.append((done, total))).vectors(["a", "b", "A"])

    assert told == [(2, 2)]

"""What every encoder refuses to read."""

from collections.abc import Sequence


def check_texts(texts: Sequence[str]) -> None:
    """Refuse what no encoder can read.

    Raises:
        ValueError: Naming the index of the first such text, never the text.
    """
    if isinstance(texts, str):
        raise ValueError("expected a sequence of texts, not one string")
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"text {index} is not a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ValueError(f"text {index} holds a lone surrogate") from None

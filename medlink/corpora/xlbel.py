"""Reads XL-BEL (Liu 2021): mentions of UMLS concepts in ten languages, with or without their Wikipedia sentence."""

import re
from collections.abc import Iterator
from pathlib import Path

from medlink.corpora.lines import read_lines
from medlink.corpora.records import CorpusReport, Gold, LabeledDocument, LabeledMention
from medlink.errors import SourceError

LANGUAGES = ("de", "en", "es", "fi", "ja", "ko", "ru", "th", "tr", "zh")

_TARGET = re.compile("<tgt>(.*?)</tgt>")


def read_xlbel(path: Path, *, report: CorpusReport | None = None) -> Iterator[LabeledDocument]:
    """Stream the mentions of an XL-BEL file, each in a document of its own.

    A line is `CUI||mention` (v0.0) or `CUI||mention||sentence` (v1.0) with the mention between `<tgt>` and `</tgt>`.
    Where a `|` joins CUIs, each of them is right. Blanks of the sentence are kept as they are.

    Args:
        path: The file, UTF-8.
        report: Filled while the file is read.

    Raises:
        SourceError: The file is missing or a line is of another form; names the file and the line.
    """
    counts = report if report is not None else CorpusReport()
    for number, line in read_lines(path):
        cuis, _, rest = line.partition("||")
        mention, bars, sentence = rest.partition("||")
        gold = (tuple(f"UMLS:{cui}" for cui in cuis.split("|") if cui),)
        if not gold[0] or not mention.strip():
            raise SourceError("a line is CUI||mention or CUI||mention||sentence", file=str(path), line=number)
        id_ = f"{path.stem}:{number}"
        if not bars:
            document = LabeledDocument.of_mention(id_, mention, gold)
        elif target := _TARGET.search(sentence):
            document = _in_sentence(id_, mention, target, gold)
        else:
            raise SourceError("the sentence has no <tgt>mention</tgt>", file=str(path), line=number)
        counts.count(document)
        yield document


def _in_sentence(id_: str, mention: str, target: re.Match[str], gold: Gold) -> LabeledDocument:
    text = target.string[: target.start()] + target[1] + target.string[target.end() :]
    start = target.start()
    return LabeledDocument(id_, text, (LabeledMention(id_, start, start + len(target[1]), mention, "", gold),))

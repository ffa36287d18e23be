"""Reads MedMentions st21pv (Mohan 2019) as a list of mentions, with the sentence of each where contexts are there."""

import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

from medlink.corpora.lines import read_lines
from medlink.corpora.records import CorpusReport, LabeledDocument, LabeledMention
from medlink.errors import SourceError

_HEADER = ["pmid", "split", "order", "cui", "mention"]


@dataclass(frozen=True, slots=True)
class _Row:
    """A mention of the list."""

    pmid: str
    cui: str
    text: str


@dataclass(frozen=True, slots=True)
class _Context:
    """The tokens of a sentence, and which of them the mention begins with."""

    tokens: tuple[str, ...]
    first: int


def read_medmentions(
    path: Path, split: str, contexts: Path | None = None, *, report: CorpusReport | None = None
) -> Iterator[LabeledDocument]:
    """Stream the sentences of a split, or its bare mentions where there are no contexts.

    The list has the columns `pmid split order cui mention`. The contexts are an archive with one file for each
    PMID, in it one block for each mention in the order of the list: `token<TAB>tag`, the mention beginning at the
    one tag `B:CUI`. A text is the tokens with blanks between them, but a mention is written as in the list. Where a
    sentence was cut inside a mention the text ends with it, which counts as a mismatch.

    Args:
        path: The list, UTF-8, plain or gzipped.
        split: train, dev or test.
        contexts: The `.tar.gz` of the split; without it each mention is its own document.
        report: Filled while the list is read.

    Raises:
        SourceError: A file is missing, damaged or of another form, or the contexts do not fit the list.
    """
    counts = report if report is not None else CorpusReport()
    blocks = _read_contexts(contexts) if contexts else None
    for pmid, group in groupby(_rows(path, split), key=lambda row: row.pmid):
        rows = list(group)
        if blocks is None:
            documents = [LabeledDocument.of_mention(pmid, row.text, ((f"UMLS:{row.cui}",),)) for row in rows]
        else:
            documents = list(_sentences(rows, blocks.get(pmid, ""), str(contexts)))
        for document in documents:
            counts.count(document)
            yield document


def read_pmids(path: Path) -> frozenset[str]:
    """Return the PMIDs of a split of the official corpus, one a line.

    Raises:
        SourceError: The file is missing or damaged.
    """
    return frozenset(line.strip() for _, line in read_lines(path) if line.strip())


def _rows(path: Path, split: str) -> Iterator[_Row]:
    for number, line in read_lines(path):
        columns = line.split("\t")
        if len(columns) != len(_HEADER) or (number == 1 and columns != _HEADER):
            raise SourceError(f"the columns must be {' '.join(_HEADER)}", file=str(path), line=number)
        pmid, of_split, _, cui, text = columns
        if number > 1 and of_split == split:
            yield _Row(pmid, cui, text)


def _read_contexts(path: Path) -> dict[str, str]:
    """Return the content of each file of the archive by PMID."""
    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.isfile() and (file := archive.extractfile(member)):
                    found[PurePosixPath(member.name).stem] = file.read().decode()
    except UnicodeDecodeError:
        raise SourceError("not UTF-8", file=str(path)) from None
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise SourceError("damaged or cut short; fetch it again", file=str(path)) from error
    except OSError as error:
        raise SourceError(error.strerror or "damaged; fetch it again", file=str(path)) from error
    return found


def _sentences(rows: Sequence[_Row], content: str, file: str) -> Iterator[LabeledDocument]:
    """Yield the sentences of an abstract, each with those of its mentions that follow each other in the list."""
    blocks = [block for block in content.split("\n\n") if block.strip()]
    if len(blocks) != len(rows):
        message = f"{len(blocks)} contexts for the {len(rows)} mentions of {rows[0].pmid} in the list"
        raise SourceError(message, file=file)
    sentence: list[tuple[_Row, _Context]] = []
    for row, block in zip(rows, blocks, strict=True):
        context = _context(row, block, file)
        if sentence:
            before = sentence[-1][1]
            # The same words may come again as a sentence of their own.
            if context.tokens != before.tokens or context.first <= before.first:
                yield _sentence(sentence)
                sentence = []
        sentence.append((row, context))
    if sentence:
        yield _sentence(sentence)


def _context(row: _Row, block: str, file: str) -> _Context:
    lines = [line.split("\t") for line in block.strip("\n").split("\n")]
    firsts = [place for place, line in enumerate(lines) if line[-1].startswith("B:")]
    if len(firsts) != 1 or lines[firsts[0]][-1] != f"B:{row.cui}" or any(len(line) != 2 for line in lines):
        raise SourceError(f"a context of {row.pmid} is not token, tag, with one B of the mention's CUI", file=file)
    return _Context(tuple(line[0] for line in lines), firsts[0])


def _sentence(labeled: Sequence[tuple[_Row, _Context]]) -> LabeledDocument:
    """Write a sentence out and find its mentions in it."""
    pmid, tokens = labeled[0][0].pmid, labeled[0][1].tokens
    glued = {place for row, context in labeled for place in _glued(tokens, context.first, row.text)}
    text, starts = "", []
    for place, token in enumerate(tokens):
        text += " " if place and place not in glued else ""
        starts.append(len(text))
        text += token
    mentions = []
    for row, context in labeled:
        start = starts[context.first]
        end = min(start + len(row.text), len(text))
        mentions.append(LabeledMention(pmid, start, end, row.text, "", ((f"UMLS:{row.cui}",),)))
    return LabeledDocument(pmid, text, tuple(mentions))


def _glued(tokens: Sequence[str], first: int, mention: str) -> Iterator[int]:
    """Yield the places of the tokens that the mention writes without a blank before them.

    >>> list(_glued(("a", "P", "-", "gp", "gene", "."), 1, "P-gp gene"))
    [2, 3]
    """
    rest = mention
    for place in range(first, len(tokens)):
        bare = rest.lstrip()
        if not bare or not (bare.startswith(tokens[place]) or tokens[place].startswith(bare)):
            return
        if place > first and bare == rest:
            yield place
        rest = bare[len(tokens[place]) :]

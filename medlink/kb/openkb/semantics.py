"""Semantic types of the UMLS Semantic Network, derived from the sources' own hierarchies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from medlink.types import SemanticType

# The order in which a concept lists its types: most specific first, and a disease before a process or finding.
TYPES = {
    "T191": "Neoplastic Process",
    "T048": "Mental or Behavioral Dysfunction",
    "T019": "Congenital Abnormality",
    "T037": "Injury or Poisoning",
    "T190": "Anatomical Abnormality",
    "T184": "Sign or Symptom",
    "T047": "Disease or Syndrome",
    "T046": "Pathologic Function",
    "T033": "Finding",
    "T103": "Chemical",
    "T001": "Organism",
    "T023": "Body Part, Organ, or Organ Component",
    "T025": "Cell",
    "T028": "Gene or Genome",
    "T169": "Functional Concept",
}
# A disorder of these is more than "some disease", which the other sources say for want of knowing better.
_DISORDERS = frozenset({"T191", "T048", "T019", "T037"})
# What HPO lists as a finding of a patient is a finding only where no source says what kind of disorder it is.
_KINDS = _DISORDERS | {"T190", "T184", "T047", "T046"}
_ORDER = {tui: position for position, tui in enumerate(TYPES)}

MONDO_ROOTS = {
    "MONDO:0045024": "T191",  # cancer or benign tumor
    "MONDO:0005070": "T191",  # neoplasm
    "MONDO:0002025": "T048",  # psychiatric disorder
    "MONDO:0019042": "T019",  # multiple congenital anomalies
    "MONDO:0019054": "T019",  # congenital limb malformation
    "MONDO:0024239": "T019",  # congenital anomaly of cardiovascular system
    "MONDO:0021178": "T037",  # injury
    "MONDO:0029000": "T037",  # poisoning
    "MONDO:0021125": "T169",  # disease characteristic
}
DOID_ROOTS = {"DOID:14566": "T191", "DOID:150": "T048", "DOID:0080015": "T019"}
HPO_ROOTS = {"HP:0002664": "T191", "HP:0000118": "T033"}
UBERON_ROOTS = {"UBERON:0001062": "T023"}
CL_ROOTS = {"CL:0000000": "T025"}

_MESH_TREES = (
    ("C04", "T191"),
    ("F03", "T048"),
    ("C16.131", "T019"),
    ("C25.723", "T037"),
    ("C26", "T037"),
    ("C23.300", "T190"),
    ("C23.888", "T184"),
    ("C23.550", "T046"),
    ("C", "T047"),
    ("D", "T103"),
    ("B", "T001"),
)


def by_ancestry(
    parents: Mapping[str, Sequence[str]], roots: Mapping[str, str], *, default: str
) -> dict[str, tuple[str, ...]]:
    """Return the types of every term: those of the roots at or above it, else `default`."""
    found: dict[str, frozenset[str]] = {}
    for term in parents:
        for current in _parents_first(term, parents, found):
            above = [found[p] for p in parents[current] if p in found]
            own = {roots[current]} if current in roots else set()
            found[current] = frozenset(own).union(*above)
    return {term: in_order(tuis) or (default,) for term, tuis in found.items()}


def _parents_first(
    term: str, parents: Mapping[str, Sequence[str]], done: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    stack, opened = [term], set[str]()
    while stack:
        current = stack[-1]
        waiting = [p for p in parents[current] if p in parents and p not in done and p not in opened]
        if waiting and current not in opened:
            opened.add(current)
            stack.extend(waiting)
            continue
        stack.pop()
        if current not in done:
            yield current


def of_trees(trees: Iterable[str]) -> tuple[str, ...]:
    """Return the types of a MeSH descriptor by its tree numbers.

    >>> of_trees(["C10.597.742", "C23.888.592.742"]), of_trees(["C04.588", "C17.800"]), of_trees(["Z01"])
    (('T184', 'T047'), ('T191',), ('T169',))
    """
    tuis = {next((tui for start, tui in _MESH_TREES if _below(tree, start)), "") for tree in trees}
    return in_order(tuis - {""}) or ("T169",)


def _below(tree: str, start: str) -> bool:
    return tree.startswith(start) if len(start) == 1 else tree == start or tree.startswith(start + ".")


def in_order(tuis: Iterable[str]) -> tuple[str, ...]:
    """Return the types most specific first; "some disease" gives way to a kind of disease, a finding to any kind."""
    distinct = set(tuis)
    if distinct & _KINDS:
        distinct.discard("T033")
    if distinct & _DISORDERS:
        distinct.discard("T047")
    return tuple(sorted(distinct, key=_ORDER.__getitem__))


def semantic_type(tui: str) -> SemanticType:
    """Return the type with its name."""
    return SemanticType(tui, TYPES[tui])

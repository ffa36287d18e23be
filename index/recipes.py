"""How the vectors of a build are laid out for search, by name, and how near to exact search that must stay."""

from dataclasses import dataclass

from medlink.errors import UnknownValueError

_FLAT_UP_TO = 400_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """A FAISS index factory string with its search effort and its gate."""

    name: str
    factory: str
    """String for `faiss.index_factory`, metric inner product."""
    exact: bool
    """Whether a search looks at every vector."""
    effort: int = 0
    """efSearch of an HNSW graph."""
    recall: float = 1.0
    """Least share of the true ten nearest that a build must find, or it is refused."""

    @property
    def lossless(self) -> bool:
        """Whether the vectors are kept as they were added, bit for bit."""
        return self.factory.endswith("Flat")


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("flat", "Flat", exact=True),
        Recipe("hnsw", "HNSW32,Flat", exact=False, effort=128, recall=0.95),
        Recipe("hnsw-sq8", "HNSW32,SQ8", exact=False, effort=128, recall=0.93),
    )
}


def choose_recipe(name: str, vectors: int) -> Recipe:
    """Return a recipe by name; `auto` takes exact search while that is fast enough.

    Raises:
        UnknownValueError: No recipe has this name.
    """
    if name == "auto":
        return RECIPES["flat" if vectors <= _FLAT_UP_TO else "hnsw-sq8"]
    if name not in RECIPES:
        raise UnknownValueError("index recipe", name, ["auto", *RECIPES])
    return RECIPES[name]

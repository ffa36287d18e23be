"""A knowledge base of a few hundred names, loaded and indexed as users do it, with the encoder that ships."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.settings import Settings
from index.build import Content, build_index
from index.store import BuildStore, IndexBuild
from medlink.kb.database import migrate, open_engine
from medlink.kb.load import fingerprint, load
from medlink.kb.readers import open_reader
from medlink.kb.repository import Repository
from medlink.types import LinkOptions, LinkResult, Mention

ROOT = Path(__file__).parents[2]
SHIPPED_ENCODER = ROOT / "artefacts/encoder"


@pytest.fixture(scope="session")
def index_file(tmp_path_factory) -> Callable[[Path], IndexBuild]:
    def index(source: Path) -> IndexBuild:
        home = tmp_path_factory.mktemp("faults")
        engine = open_engine(f"sqlite:///{home / 'store.sqlite'}")
        migrate(engine)
        load(engine, open_reader(source), name="faults", format="tsv", options={}, fingerprint=fingerprint(source, {}))
        kb = Repository(engine)
        content = Content(kb.concepts(), kb.retirements(), kb.sources(), kb.fingerprints(), kb.concept_count())
        store = BuildStore(home / "builds")
        build_id = build_index(content, SHIPPED_ENCODER, store, threads=1)
        build = store.open(build_id, threads=1)
        engine.dispose()
        return build

    return index


@pytest.fixture(scope="session")
def faults(index_file) -> IndexBuild:
    """The index build over tests/data/faults.tsv."""
    return index_file(ROOT / "tests/data/faults.tsv")


@pytest.fixture(scope="session")
def judged(faults) -> IndexBuild:
    """The same build with the models that ship."""
    return faults.with_models(Settings().models)


@pytest.fixture(scope="session")
def ask(faults) -> Callable[..., LinkResult]:
    """Links one mention over that build."""

    def ask_one(mention: str | Mention, **options) -> LinkResult:
        sent = Mention(mention) if isinstance(mention, str) else mention
        (result,) = faults.linker.link([sent], LinkOptions(**options))
        return result

    return ask_one

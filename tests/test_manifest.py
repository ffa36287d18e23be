import json

import pytest

from medlink.manifest import describe_files, find_damage, read_manifest, write_manifest


def test_a_manifest_comes_back_as_it_was_written(tmp_path):
    write_manifest(tmp_path, {"b": 1, "a": ["ä"]})

    assert read_manifest(tmp_path) == {"a": ["ä"], "b": 1}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"a": 1}', b'{"a": 1, "seal": "0"}'])
def test_what_was_not_written_by_us_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)

    with pytest.raises(ValueError, match=r"manifest\.json"):
        read_manifest(tmp_path)


def test_a_change_of_layout_alone_is_refused_too(tmp_path):
    write_manifest(tmp_path, {"a": 1})
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text())))

    with pytest.raises(ValueError, match="seal"):
        read_manifest(tmp_path)


def test_every_kind_of_damage_is_named(tmp_path):
    for name in ("same", "cut", "changed", "gone"):
        (tmp_path / name).write_bytes(b"content")
    files = describe_files(tmp_path)
    (tmp_path / "cut").write_bytes(b"con")
    (tmp_path / "changed").write_bytes(b"CONTENT")
    (tmp_path / "gone").unlink()
    (tmp_path / "stray").touch()

    assert find_damage(tmp_path, files) == [
        "changed differs from its hash in the manifest",
        "cut has 3 bytes, the manifest says 7",
        "gone is missing",
        "stray is not in the manifest",
    ]

"""What the README shows is what there is."""

import json
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from app.answers import LinkResponse
from medlink.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def benchmark(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / f"benchmarks/{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_its_tables_are_made_from_the_committed_results():
    assert benchmark("readme").filled(README) == README, "run `python benchmarks/readme.py`"


def test_the_table_of_refusal_is_of_the_threshold_of_the_build_and_leaves_blank_what_there_is_not():
    row = {"corpus": "gsc-plus", "split": "dev", "dictionary": "hpo", "protocol": "strict", "threshold": "default"}
    whole = {"hidden": 0.0, "n": 170, "n_nil": 0, "nil_precision": None, "nil_recall": None, "kept": 97.25}
    hidden = {"hidden": 30.0, "n": 168, "n_nil": 50, "nil_precision": 85.71, "nil_recall": 90.0, "kept": 94.5}
    stated = {"ece": 0.0377, "n_ece": 173}
    rows = [row | whole | stated, row | hidden | {"ece": None, "n_ece": 0}, row | hidden | stated | {"threshold": 0.5}]

    header, *cells = benchmark("readme").refusal(rows)

    assert [len(line) for line in cells] == [len(header)] * 2
    assert cells == [
        ["gsc-plus dev", "hpo", "strict", "0 %", "170", "0", "", "", "97.2", "0.038 (173)"],
        ["gsc-plus dev", "hpo", "strict", "30 %", "168", "50", "85.7", "90.0", "94.5", ""],
    ]


def test_its_reply_is_one_of_the_service():
    shown = re.search(r"<!-- reply -->\n```json\n(.*?)```", README, re.DOTALL)[1]

    reply = LinkResponse.model_validate(json.loads(shown), strict=True)

    assert reply.results[0].candidates[0].cui == "C0027051"
    assert LinkResponse.model_validate(reply).model_dump(mode="json", exclude_unset=True) == json.loads(shown)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", README))))
def test_its_make_targets_exist(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("command", sorted(set(re.findall(r"bin/medlink ((?:[a-z-]+ )?[a-z-]+) ", README))))
def test_its_commands_exist(command):
    words = command.split() if command.split()[0] in {"kb", "index", "train"} else command.split()[:1]

    shown = CliRunner().invoke(app, [*words, "--help"])

    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_its_links_lead_somewhere(link):
    assert (ROOT / link).exists()


def test_nothing_names_the_host_of_a_registry():
    hosts = re.compile(r"https?://(?:[\w-]+\.)*(?:pypi\.org|pythonhosted\.org|npmjs\.\w+|debian\.org)")
    texts = [p for pattern in ("*.md", "*.toml", "*.txt", "Makefile") for p in ROOT.glob(pattern)]

    assert not [p.name for p in [*texts, *ROOT.glob("requirements/*")] if hosts.search(p.read_text(encoding="utf-8"))]

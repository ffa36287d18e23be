"""The Compose file and the images, as far as that can be said without a Docker engine."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import yaml

from app.settings import Settings

ROOT = Path(__file__).parents[1]
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = ROOT / "docker/Dockerfile"
BIN = Path(sys.executable).parent
SERVICES = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
OURS = sorted(set(SERVICES) - {"db"})


@pytest.fixture(scope="module")
def trial():
    spec = spec_from_file_location("try_in_root", ROOT / "docker/try_in_root.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_it_keeps_to_the_compose_specification():
    check = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec"]

    assert subprocess.run([*check, COMPOSE], timeout=60, check=False).returncode == 0


def test_a_compose_file_that_does_not_is_told(tmp_path):
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text("services: {api: {image: x, read_onyl: true}}\n", encoding="utf-8")
    check = [BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", wrong]

    assert subprocess.run(check, timeout=60, check=False, capture_output=True).returncode == 1


def test_the_linter_of_dockerfiles_has_nothing_to_say():
    assert subprocess.run([BIN / "hadolint", DOCKERFILE], timeout=60, check=False).returncode == 0


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_container_has_no_rights_and_a_root_that_cannot_be_written(name):
    service = SERVICES[name]

    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "/tmp" in service["tmpfs"]
    assert "privileged" not in service
    assert "cap_add" not in service


@pytest.mark.parametrize("name", OURS)
def test_every_variable_it_sets_is_a_setting(name):
    variables = SERVICES[name]["environment"]

    known = {f"MEDLINK_{field}".upper() for field in Settings.model_fields}
    assert set(variables) <= known
    set_in_image = set(re.findall(r"MEDLINK_[A-Z_]+(?==)", DOCKERFILE.read_text(encoding="utf-8")))
    assert set_in_image
    assert set_in_image <= known


def test_only_this_machine_reaches_the_service_and_nobody_the_database():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}

    assert list(published) == ["api"]
    assert all(port.startswith("127.0.0.1:") for port in published["api"])


def test_the_service_waits_for_the_schema_and_an_index():
    for name in ("api", "worker"):
        waits = {of: how["condition"] for of, how in SERVICES[name]["depends_on"].items()}
        assert waits == {"db": "service_healthy", "prepare": "service_completed_successfully"}
    assert all(SERVICES[name]["healthcheck"]["test"] for name in ("db", "api", "worker"))


def test_images_go_by_plain_names():
    sources = re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    images = [*sources, *(service["image"] for service in SERVICES.values())]

    assert [image for image in images if "/" in image] == []


def test_the_image_that_serves_has_no_torch_and_ends_as_a_user(trial):
    steps = list(trial.instructions(DOCKERFILE.read_text(encoding="utf-8")))
    stages, current = {}, []
    for word, rest in steps:
        if word == "FROM":
            current = stages.setdefault(rest.split(" AS ")[1], [rest.split(" AS ")[0]])
        else:
            current.append(f"{word} {rest}")
    parents = ["serve"]
    while stages.get(parents[-1]):
        parents.append(stages[parents[-1]][0])
    of_image = [step for name in parents if name in stages for step in stages[name][1:]] + stages["serve-packages"][1:]

    assert not [step for step in of_image if re.search(r"torch|train\.txt", step)]
    users = [step for name in reversed(parents) if name in stages for step in stages[name] if step.startswith("USER")]
    assert users[-1] == "USER 10001:10001"
    assert not re.search(
        r"^(torch|transformers|lightgbm)==", (ROOT / "requirements/serve.txt").read_text(), re.MULTILINE
    )


def test_what_is_copied_is_let_in_and_nothing_else_is(trial, tmp_path):
    builder = trial.Builder(tmp_path, tmp_path, [])
    copied = [
        name
        for word, rest in trial.instructions(DOCKERFILE.read_text(encoding="utf-8"))
        if word == "COPY" and "--from" not in rest
        for name in rest.split()[:-1]
    ]

    assert len(copied) > 10
    assert [name for name in copied if not (builder.sent(name) and (ROOT / name).exists())] == []
    assert not any(builder.sent(name) for name in (".git/config", "var/medlink.sqlite", "tests/conftest.py", ".env"))


def test_health_tells_a_service_that_is_up_from_one_that_is_not():
    run = [sys.executable, ROOT / "docker/health.py", "readyz"]
    nowhere = {**os.environ, "MEDLINK_PORT": "1"}

    assert subprocess.run(run, env=nowhere, check=False, capture_output=True, timeout=60).returncode != 0


def test_preparing_makes_a_schema_and_an_index_and_the_second_time_changes_nothing(tmp_path):
    shutil.copy(ROOT / "docker/medlink", tmp_path / "medlink")
    terms = tmp_path / "terms.csv"
    terms.write_text("id,name,sab\n1,asthma,OURS\n2,cold,OURS\n", encoding="utf-8")
    environment = {
        "PATH": f"{tmp_path}:{BIN}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MEDLINK_DATA_DIR": str(tmp_path / "data"),
    }
    prepare = ["sh", ROOT / "docker/prepare.sh", str(terms)]

    for _ in range(2):
        done = subprocess.run(prepare, env=environment, cwd=ROOT, check=False, capture_output=True, timeout=250)
        assert done.returncode == 0, done.stderr

    assert b"up to date" in done.stdout
    assert len(list((tmp_path / "data/builds").iterdir())) == 1

"""What the OpenAPI description says is what the service does, whatever it is sent."""

import os
import subprocess
import sys
from pathlib import Path
from string import Template

import pytest
from sqlalchemy import insert

from app.settings import Settings
from medlink.kb import orm
from medlink.kb.builds import Builds
from medlink.kb.curation import Curations
from medlink.kb.database import migrate, open_engine, writing
from medlink.kb.jobs import Jobs
from medlink.kb.keys import Keys
from medlink.manifest import read_manifest

CONFIG = Path(__file__).with_name("schemathesis.toml")
# Who changes the API sets more, and takes the time; see CONTRIBUTING.md.
EXAMPLES = os.environ.get("CONTRACT_EXAMPLES", "10")


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    data_dir = tmp_path_factory.mktemp("data")
    mentions = data_dir / "mentions.csv"
    mentions.write_text("text\ncold\nheart attack\n")
    # Workers would only slow it down; and a key that is not needed cannot be found to be ignored.
    apart = {"rebuild_in_service": False, "open_to_loopback": False}
    return Settings(data_dir=data_dir, drift_mentions=mentions, log_level="ERROR", **apart)


@pytest.fixture(scope="module")
def known(settings, make_build) -> dict[str, str]:
    """A key, and ids, of a store that has builds, corrections and jobs: something is behind each path."""
    engine = open_engine(settings.database_url)
    migrate(engine)
    with writing(engine) as connection:
        concepts = [{"id": "HP:0000001", "preferred_name": "Cold"}, {"id": "C0004096", "preferred_name": "Asthma"}]
        connection.execute(insert(orm.Concept), concepts)
    builds = [make_build(settings.builds_dir).id for _ in range(2)]
    for build_id in builds:
        Builds(engine).register_build(build_id, read_manifest(settings.builds_dir / build_id))
        Builds(engine).activate_build(build_id)
    for number in range(5):
        Curations(engine).pin(f"chill {number}", "HP:0000001", who="ann", why="we say so")
    jobs = Jobs(engine)
    for end in ("failed", "cancelled"):
        jobs.request("rebuild", by="ann", parameters={})
        jobs.fail(jobs.take("rebuild", owner="test", seconds=60), "for a reason", state=end)
    jobs.request("rebuild", by="ann", parameters={})
    key = Keys(engine).create("boss", ["admin"])[1]
    engine.dispose()
    return {"admin_key": key, "first_build": builds[0], "second_build": builds[1]}


def test_the_service_does_what_its_description_says(serve_apart, settings, known, tmp_path):
    config = tmp_path / "schemathesis.toml"
    config.write_text(Template(CONFIG.read_text()).substitute(known))
    options = ["--max-examples", EXAMPLES, "--generation-deterministic", "--no-color", "--continue-on-failure"]
    with serve_apart(settings) as service:
        run = [sys.executable, "-m", "schemathesis.cli", "--config-file", config, "run", *options]
        done = subprocess.run(
            [*run, f"{service.url}/openapi.json"],
            cwd=tmp_path,
            env={**os.environ, "SCHEMATHESIS_HOOKS": str(CONFIG.with_name("schemathesis_hooks.py"))},
            capture_output=True,
            text=True,
            check=False,
        )
        alive = service.process.poll() is None

    assert done.returncode == 0, done.stdout + done.stderr
    assert alive

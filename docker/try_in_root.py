"""Executes the steps of docker/Dockerfile in copies of a Debian root, then runs its entry point as Compose would.

For a machine without a Docker engine; needs root. It shows that the steps work and that the result runs as a user
without rights on a read-only root; it does not show that Docker's own parser, cache, network and volumes agree.

    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm /srv/base
    python docker/try_in_root.py /srv/base /srv/try --target serve

Packages come from where pip on this machine gets them; `--share` shows paths that its configuration names.
"""

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

PROJECT = Path(__file__).resolve().parents[1]
_SHARED = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/pip.conf")


@dataclass
class Stage:
    """A stage of the Dockerfile while its steps are executed."""

    root: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
    )
    folder: str = "/"
    user: str = "0:0"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Yield each instruction with its argument, continued lines joined and comments left out."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


class Builder:
    """Executes a Dockerfile, stage by stage.

    Args:
        base: The root that stands for the image which the first stage is made from.
        work: Where a root for each stage is made.
        shared: Paths of this machine that RUN steps see at the same place, read-only.
    """

    def __init__(self, base: Path, work: Path, shared: list[str]) -> None:
        self._base = base
        self._work = work
        self._shared = [path for path in (*_SHARED, *shared) if Path(path).exists()]
        self._stages: dict[str, Stage] = {}
        self._ignored = (PROJECT / ".dockerignore").read_text(encoding="utf-8").split("\n")

    def build(self, text: str, target: str, *, dry: bool = False) -> Stage:
        """Execute the steps of the target and of the stages it needs; dry, only those that change no file."""
        stages: list[tuple[str, str, list[tuple[str, str]]]] = []
        for word, rest in instructions(text):
            if word == "FROM":
                source, _, name = rest.partition(" AS ")
                stages.append((name, source, []))
            else:
                stages[-1][2].append((word, rest))
        needed = {target}
        for name, source, steps in reversed(stages):
            if name in needed:
                needed |= {source, *(found for _, rest in steps for found in re.findall(r"--from=(\S+)", rest))}
        for name, source, steps in stages:
            if name in needed:
                self._stages[name] = self._begin(name, source, dry=dry)
                for word, rest in steps:
                    if not (dry and word in {"COPY", "RUN"}):
                        self._execute(self._stages[name], word, rest)
        return self._stages[target]

    def _begin(self, name: str, source: str, *, dry: bool) -> Stage:
        say(f"FROM {source} AS {name}")
        known = self._stages.get(source)
        stage = Stage(self._work / name)
        if known:
            stage.environment, stage.folder, stage.user = dict(known.environment), known.folder, known.user
            stage.entry, stage.command = list(known.entry), list(known.command)
        if dry:
            return stage
        shutil.rmtree(stage.root, ignore_errors=True)
        subprocess.run(
            ["cp", "-a", "--reflink=auto", str(known.root if known else self._base), str(stage.root)], check=True
        )
        if not known:
            (stage.root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
        return stage

    def _execute(self, stage: Stage, word: str, rest: str) -> None:
        say(f"{word} {rest}")
        match word:
            case "ENV" | "ARG":
                kept = stage.environment if word == "ENV" else stage.arguments
                kept.update(pair.split("=", 1) for pair in shlex.split(rest))
            case "WORKDIR":
                stage.folder = rest
                (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
            case "USER":
                stage.user = rest
            case "ENTRYPOINT":
                stage.entry, stage.command = json.loads(rest), []
            case "CMD":
                stage.command = json.loads(rest)
            case "COPY":
                self._copy(stage, shlex.split(rest))
            case "RUN":
                self._run(stage, rest)
            case "VOLUME" | "EXPOSE" | "HEALTHCHECK":
                pass
            case _:
                raise SystemExit(f"no instruction {word} is known here")

    def _copy(self, stage: Stage, words: list[str]) -> None:
        source = PROJECT
        if words[0].startswith("--from="):
            source = self._stages[words.pop(0).partition("=")[2]].root
        *files, to = words
        target = Path(to) if to.startswith("/") else Path(stage.folder) / to
        place = stage.root / str(target).lstrip("/")
        for file in files:
            there = source / file.lstrip("/")
            if source == PROJECT and not self.sent(file):
                raise SystemExit(f"{file} is left out by .dockerignore")
            if there.is_dir():
                shutil.copytree(there, place, symlinks=True, dirs_exist_ok=True, ignore=_no_caches)
                continue
            into = place / there.name if to.endswith("/") or len(files) > 1 else place
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(there, into)

    def sent(self, file: str) -> bool:
        """Say whether .dockerignore, of the kind that names what is let in, lets a file in."""
        kept = False
        for line in self._ignored:
            pattern = line.removeprefix("!")
            parts = Path(file).parts
            if (
                line
                and not line.startswith("#")
                and any(fnmatch.fnmatch("/".join(parts[: n + 1]), pattern) for n in range(len(parts)))
            ):
                kept = line.startswith("!")
        return kept

    def _run(self, stage: Stage, command: str) -> None:
        pip = {key: value for key, value in os.environ.items() if key.startswith("PIP_")}
        environment = {**pip, **stage.arguments, **stage.environment}
        line = entering(stage, ["sh", "-c", command], Mounts(tuple(self._shared)))
        subprocess.run(line, env=environment, check=True)


def _no_caches(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


@dataclass(frozen=True)
class Mounts:
    """What a process in a root sees besides the root.

    Args:
        shown: Paths of this machine, at the same place and read-only.
        volume: What is at /var/lib/medlink.
        read_only: Whether nothing else but /tmp can be written, and no right is left, as in docker-compose.yml.
    """

    shown: tuple[str, ...] = ()
    volume: Path | None = None
    read_only: bool = False


def entering(stage: Stage, command: list[str], mounts: Mounts) -> list[str]:
    """Return the command line that runs a command in the root of a stage; its mounts vanish with it."""
    root = shlex.quote(str(stage.root))
    lines = ["set -e", f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc"]
    for path in mounts.shown:
        place = stage.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if Path(path).is_dir():
            place.mkdir(exist_ok=True)
        else:
            place.touch()
        lines += [f"mount --bind {path} {place}", f"mount -o remount,ro,bind {place}"]
    if mounts.volume:
        lines.append(f"mount --bind {mounts.volume} {root}/var/lib/medlink")
    if mounts.read_only:
        lines += [f"mount -t tmpfs tmpfs {root}/tmp", f"mount -o remount,ro,bind {root}"]
    uid, gid = stage.user.split(":")
    rights = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
    if mounts.read_only:
        rights += ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    inside = f"cd {stage.folder} && exec {shlex.join(command)}"
    lines.append(f"exec chroot {root} {shlex.join([*rights, 'sh', '-c', inside])}")
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines)]


def drive(stage: Stage, volume: Path, asked: argparse.Namespace) -> None:
    """Prepare, serve, ask, try to write, and stop, as docker-compose.yml has it."""
    volume.mkdir(exist_ok=True)
    os.chown(volume, *(int(part) for part in stage.user.split(":")))
    environment = {**stage.environment, "MEDLINK_PORT": str(asked.port), "MEDLINK_HOST": "127.0.0.1"}
    if asked.database_url:
        environment["MEDLINK_DATABASE_URL"] = asked.database_url
    mounts = Mounts(tuple(asked.show), volume, read_only=True)

    def run(*command: str) -> int:
        return subprocess.run(entering(stage, list(command), mounts), env=environment, check=False).returncode

    if run("sh", "docker/prepare.sh", asked.knowledge_base):
        raise SystemExit("prepare.sh failed")
    serving = subprocess.Popen(entering(stage, [*stage.entry, *stage.command], mounts), env=environment)
    try:
        deadline = time.monotonic() + 300
        while run("python", "docker/health.py", "readyz"):
            if serving.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the service does not get ready")
            time.sleep(2)
        _ask(asked.port)
        if not run("touch", "/app/x"):
            raise SystemExit("the root can be written")
        say(f"user: {Path(f'/proc/{serving.pid}/status').read_text(encoding='ascii').split('Uid:')[1].split()[0]}")
    finally:
        serving.terminate()
        say(f"stopped with exit code {serving.wait(60)}")


def _ask(port: int) -> None:
    body = json.dumps({"mentions": ["heart attack"], "top_k": 1}).encode()
    request = Request(f"http://127.0.0.1:{port}/link", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=30) as answer:
        best = json.load(answer)["results"][0]["candidates"][0]
    say(f"heart attack: {best['cui']} {best['preferred_name']}")
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        (line,) = [line for line in answer.read().decode().splitlines() if line.startswith("medlink_build_info{")]
    say(line)


def say(line: str) -> None:
    """Tell what happens."""
    sys.stdout.write(f"== {line}\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line, build, and drive the image that serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, help="root made by debootstrap; it is copied")
    parser.add_argument("work", type=Path, help="folder for the roots of the stages")
    parser.add_argument("--target", default="serve")
    parser.add_argument("--share", action="append", default=[], help="path that RUN steps see, for pip's sources")
    parser.add_argument("--knowledge-base", default="open", help="a pack, or a file in WORK/volume by its path there")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--database-url", default="", help="store to use instead of SQLite in the volume")
    parser.add_argument("--show", action="append", default=[], help="path that the service sees: a socket's folder")
    parser.add_argument("--skip-build", action="store_true", help="drive what an earlier run has built")
    asked = parser.parse_args()
    asked.work.mkdir(parents=True, exist_ok=True)
    builder = Builder(asked.base, asked.work, asked.share)
    text = (PROJECT / "docker/Dockerfile").read_text(encoding="utf-8")
    stage = builder.build(text, asked.target, dry=asked.skip_build)
    if asked.target == "serve":
        drive(stage, asked.work / "volume", asked)
    say(f"{asked.target} is done")


if __name__ == "__main__":
    main()

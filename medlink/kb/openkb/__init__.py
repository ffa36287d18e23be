"""The open knowledge base: built from three packages anyone may download, shipped as one compressed JSONL file."""

from medlink.kb.openkb.build import build_open
from medlink.kb.openkb.report import BuildReport
from medlink.kb.openkb.scope import PACKS, PackName

__all__ = ["PACKS", "BuildReport", "PackName", "build_open"]

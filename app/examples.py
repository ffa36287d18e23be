"""Examples of what the service sends, for its OpenAPI description; a test holds that they are of its models."""

from typing import Any

_INDEX = {"id": "20261130T133054305Z", "curation_revision": 0, "channels": ["exact", "dense", "lexical"]}
_INFARCTION: dict[str, Any] = {
    "cui": "C0027051",
    "curie": "umls:C0027051",
    "preferred_name": "myocardial infarction",
    "semantic_types": [{"tui": "T047", "name": "Disease or Syndrome"}],
    "codes": [{"sab": "MESH", "code": "D009203"}, {"sab": "MONDO", "code": "MONDO:0005068"}],
}
_LINKED: dict[str, Any] = {
    "id": "note-7",
    "text": "heart attack",
    "status": "linked",
    "candidates": [
        _INFARCTION
        | {"rank": 1, "matched_name": "heart attack", "score": 0.9907, "probability": 0.9245, "relation": "exact"}
    ],
}
_NIL: dict[str, Any] = {
    "text": "the big one",
    "status": "nil",
    "reason": "below_threshold",
    "candidates": [],
    "nearest": _INFARCTION
    | {"rank": 1, "matched_name": "the big one", "score": 0.2, "probability": 0.0321, "relation": "exact"},
}
LINK: dict[str, Any] = {"index": _INDEX, "results": [_LINKED, _NIL]}
BULK: dict[str, Any] = {
    "index": _INDEX,
    "results": [_LINKED, {"item": 1, "error": {"code": "mention", "detail": "mention 1: holds a NUL character"}}],
}
CONCEPT: dict[str, Any] = _INFARCTION | {
    "index": _INDEX,
    "names": [
        {"text": "heart attack", "sab": "MONDO", "tty": "SY", "language": "ENG", "code": "", "suppressed": False},
    ],
    "definitions": [{"sab": "MONDO", "text": "Death of heart muscle for want of blood."}],
    "broader": [{"cui": "C0018799", "curie": "umls:C0018799", "preferred_name": "heart disorder"}],
}
JOB: dict[str, Any] = {
    "id": "5f0c7a9e1d2b4c3f",
    "kind": "rebuild",
    "state": "running",
    "stage": "encode",
    "progress": 0.41,
    "done": 57344,
    "total": 148207,
    "rate": 470.2,
    "eta_seconds": 193.2,
    "counts": {},
    "requested_by": "operations",
    "cancel_requested": False,
    "build_id": None,
    "error": None,
    "created_at": "2026-11-30T13:26:04Z",
    "started_at": "2026-11-30T13:26:05Z",
    "heartbeat_at": "2026-11-30T13:28:31Z",
    "finished_at": None,
}
BUILD: dict[str, Any] = {
    "id": "20261130T133054305Z",
    "created_at": "2026-11-30T13:30:54Z",
    "state": "ready",
    "active": True,
    "here": True,
    "counts": {"concepts": 45592, "names": 196321, "distinct_texts": 148207},
    "recipe": "flat",
    "loads": {"open": "0b5f4c1e9d7a"},
}

"""API keys: made once, shown once, and kept as a hash."""

import hashlib
import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex, token_urlsafe
from typing import Literal, get_args

from sqlalchemy import Engine, insert, select, update

from medlink.errors import UnknownIdError, UnknownValueError
from medlink.kb import orm
from medlink.kb.database import reading, writing

Scope = Literal["link", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

_PREFIX = "medlink"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as it is kept; its secret is not."""

    id: str
    name: str
    hash: str = field(repr=False)
    scopes: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None = None

    def allows(self, scope: Scope) -> bool:
        """Say whether whoever holds the key may do this; who administers may link too."""
        return scope in self.scopes or "admin" in self.scopes


class Keys:
    """The keys of the store; a key is revoked and never deleted, so that its name keeps its meaning in the records."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def create(self, name: str, scopes: Collection[str]) -> tuple[ApiKey, str]:
        """Make a key and return it with its text, which nobody can read again.

        Raises:
            UnknownValueError: A scope that is none.
        """
        for scope in scopes:
            if scope not in SCOPES:
                raise UnknownValueError("scope", scope, list(SCOPES))
        key_id = token_hex(4)
        text = f"{_PREFIX}_{key_id}_{token_urlsafe(32)}"
        key = ApiKey(key_id, name, hash_of(text.encode()), tuple(sorted(set(scopes))), datetime.now(UTC))
        values = {"id": key.id, "name": name, "hash": key.hash, "scopes": list(key.scopes)}
        with writing(self._engine) as connection:
            connection.execute(insert(orm.ApiKey).values(created_at=key.created_at, **values))
        return key, text

    def keys(self) -> list[ApiKey]:
        """Return every key there ever was, the oldest first."""
        key = orm.ApiKey
        query = select(key.id, key.name, key.hash, key.scopes, key.created_at, key.revoked_at)
        with reading(self._engine) as connection:
            rows = connection.execute(query.order_by(key.created_at, key.id))
            return [ApiKey(id_, name, hash_, tuple(scopes), at, out) for id_, name, hash_, scopes, at, out in rows]

    def valid(self) -> dict[str, ApiKey]:
        """Return the keys that are not revoked, by id."""
        return {key.id: key for key in self.keys() if key.revoked_at is None}

    def revoke(self, key_id: str) -> None:
        """Let a key open nothing any more.

        Raises:
            UnknownIdError: No such key, or it is revoked already.
        """
        key = orm.ApiKey
        valid = update(key).where(key.id == key_id, key.revoked_at.is_(None))
        with writing(self._engine) as connection:
            revoked = connection.execute(valid.values(revoked_at=datetime.now(UTC)))
        if not revoked.rowcount:
            raise UnknownIdError("key that is valid")


def hash_of(key: bytes) -> str:
    """Return what is kept of a key.

    A fast hash is enough: a key has 256 random bits, which no list of guesses shortens, and it is hashed with every
    request. A slow one is for what people make up.
    """
    return hashlib.sha256(key).hexdigest()


def find_key(sent: bytes, valid: Mapping[str, ApiKey]) -> ApiKey | None:
    """Return the key that was sent, if it is valid; how long that takes tells nothing of its secret.

    Args:
        sent: The key as it came, whatever bytes it has.
        valid: The valid keys by id.
    """
    parts = sent.split(b"_", 2)
    key_id = parts[1].decode("ascii", "replace") if len(parts) == 3 else ""
    known = valid.get(key_id)
    is_same = hmac.compare_digest(hash_of(sent), known.hash if known else hash_of(b""))
    return known if known and is_same else None

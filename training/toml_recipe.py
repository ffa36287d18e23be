"""Recipes as TOML files: every key known, every value of its type."""

import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from medlink.errors import SourceError

AnyRecipe = TypeVar("AnyRecipe")


def read_toml(path: Path, kind: type[AnyRecipe]) -> AnyRecipe:
    """Read a recipe of any kind.

    Args:
        path: A TOML file without tables.
        kind: A frozen dataclass; its fields are the keys, and those without a default must be there.

    Raises:
        SourceError: The file is missing, not TOML, or a key or value is not one of such a recipe; names it.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceError("no such recipe", file=str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"not TOML: {error}", file=str(path)) from None
    hints = get_type_hints(kind)
    needed = {f.name: f.default is MISSING for f in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    wrong = [f"unknown key {key!r}" for key in sorted(set(given) - set(needed))]
    wrong += [f"the key {key!r} is missing" for key in needed if needed[key] and key not in given]
    if wrong:
        raise SourceError(f"{wrong[0]}; valid: {', '.join(needed)}", file=str(path))
    return kind(**{key: _checked(key, value, hints[key], path) for key, value in given.items()})


def _checked(key: str, value: Any, hint: Any, path: Path) -> Any:  # noqa: ANN401 - TOML values of any type
    if choices := get_args(hint):
        if value not in choices:
            raise SourceError(f"{key} must be one of {', '.join(choices)}", file=str(path))
        return value
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise SourceError(f"{key} must be of type {hint.__name__}", file=str(path))
    return value

"""Functions that read files of a bounded size, and write files whole; ``yaml_text`` defines the YAML in use."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

from snake_gym.config.errors import ConfigError, nearest, show

LARGEST_BYTES = 1 << 22
"""Largest file of settings or points that is read."""
LARGEST_RECORD_BYTES = 1 << 28
"""Largest file of rows or histories that is read."""


def read_file(path: str | os.PathLike[str], most: int = LARGEST_BYTES) -> bytes:
    """Return the content of a file from anywhere.

    Raises OSError, with the reason as ``strerror``, if it is missing, a pipe or a device, or larger than ``most``.
    """
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():  # might never end
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    with path.open("rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it has more than {most} bytes", str(path))
    return content


def load_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the mapping in a YAML file. Raises ConfigError if it is missing, empty, no YAML or no mapping."""
    from snake_gym.config.yaml_text import parse_yaml

    path = find_config(path)
    try:
        text = read_file(path).decode()
    except FileNotFoundError:
        guess = near_path(path)
        raise ConfigError(f"{path} does not exist" + (f"; did you mean '{guess}'?" if guess else "")) from None
    except (OSError, ValueError) as error:  # ValueError: no text, or no name that a file can have
        raise ConfigError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    data = parse_yaml(text, str(path))
    if data is None:
        raise ConfigError(f"{path} is empty; expected settings of the form 'key: value' ({{}} for none)")
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds {show(data)}; expected settings of the form 'key: value'")
    return data


def find_config(path: str | os.PathLike[str]) -> Path:
    """Return ``path``, or the shipped file if it is below ``configs`` and the working directory lacks it."""
    path = Path(path)
    if path.parts[:1] == ("configs",) and not path.exists():
        package = Path(__file__).parents[1]  # in a checkout, configs lie next to it
        return next((folder / path for folder in (package, package.parent) if (folder / path).exists()), path)
    return path


def near_path(path: str | os.PathLike[str]) -> Path | None:
    """Return the folder or file that a missing path most likely means, or None."""
    missing = Path(path)
    try:
        present = {entry.stem: entry for entry in sorted(missing.parent.iterdir())}  # endings make names look alike
    except OSError:
        return None
    guess = nearest(missing.stem, present)
    return None if guess is None else present[guess]


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part. Makes its folder."""
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():  # a pipe or a terminal cannot be replaced
        path.write_bytes(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with partial.open("xb") as stream:  # in a folder of all, nobody has laid a link here
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)  # a disk that is full names none
        raise
    finally:
        partial.unlink(missing_ok=True)


def make_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder for results before the work for them. Raises ConfigError if nothing can be written there."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ConfigError(f"{path} cannot be written to: {error.strerror or error}; expected a folder") from None


def prepare_file(path: str | os.PathLike[str], option: str) -> None:
    """Make the folder of a file that is to be written after some work. Raises ConfigError if it cannot be written."""
    path = Path(path)
    if path.is_dir():
        raise ConfigError(f"{option} is {show(str(path))}, a folder; expected a file")
    if path.is_file() or not path.exists():  # a pipe or a terminal takes what it is given
        make_folder(path.parent)


def dump_yaml(obj: object, path: str | os.PathLike[str]) -> None:
    """Write a dataclass or mapping as YAML, atomically; ``load_yaml`` and ``build`` read it back to the same value."""
    from snake_gym.config.yaml_text import format_yaml

    write_atomic(path, format_yaml(obj))

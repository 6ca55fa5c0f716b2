"""JSON schemas of the settings files: as the classes are, and as the shipped files are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from snake_gym.config import load_yaml, read_json, to_json

pytest.importorskip("torch")  # the settings of a training are part of it
jsonschema = pytest.importorskip("jsonschema")
referencing = pytest.importorskip("referencing")

from snake_gym.agents.settings_schemas import make_schemas  # noqa: E402

CONFIGS = Path(__file__).parents[2] / "configs"
FOLDER = CONFIGS / "schemas"


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    return {path.name: read_json(path.read_text(), str(path)) for path in FOLDER.glob("*.json")}


def errors_in(settings: Any, name: str, schemas: dict[str, Any]) -> list[str]:
    registry = referencing.Registry().with_resources(
        (file, referencing.Resource.from_contents(schema)) for file, schema in schemas.items()
    )
    validator = jsonschema.Draft202012Validator(schemas[name], registry=registry)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(settings)]


def test_the_shipped_schemas_are_up_to_date(schemas: dict[str, Any]) -> None:
    written = read_json(to_json(make_schemas()), "schemas")
    shipped = {Path(name).stem: {k: v for k, v in schema.items() if k != "$schema"} for name, schema in schemas.items()}
    assert shipped == written, "run: python -m snake_gym.agents.settings_schemas configs/schemas"


def test_every_shipped_file_names_its_schema_and_obeys_it(schemas: dict[str, Any]) -> None:
    for path in CONFIGS.rglob("*.yaml"):
        first = path.read_text().splitlines()[0]
        found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert found is not None, path
        schema = (path.parent / found[1]).resolve()
        assert schema.parent == FOLDER.resolve(), path
        assert errors_in(load_yaml(path), schema.name, schemas) == [], path


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("env.json", {"faults": {"n_mx": 3}}),
        ("train.json", {"env": {"action": {"kind": "residul"}}}),
        ("train.json", {"algorithm": {"name": "PPO", "gamma": 2}}),
        ("hardware.json", {"connection": {"prot": "/dev/ttyUSB0"}}),
    ],
)
def test_a_wrong_setting_is_found_by_the_editor(name: str, settings: Any, schemas: dict[str, Any]) -> None:
    assert errors_in(settings, name, schemas) != []

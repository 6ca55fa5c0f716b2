"""Finding a robot by name, in a file or as settings, and what the user is told when there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snake_gym.config import ConfigError, dump_yaml, to_dict
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import PRESETS
from snake_gym.robot.spec import RobotSpec

CONFIGS = Path(__file__).parents[2] / "configs" / "robot"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_by_name_in_every_form(name: str, tmp_path: Path) -> None:
    spec = PRESETS[name]
    assert load_robot(name) is spec
    assert load_robot(spec) is spec
    assert load_robot({"preset": name}) == spec
    assert load_robot(to_dict(spec)) == spec
    dump_yaml(spec, tmp_path / "robot.yaml")
    assert load_robot(tmp_path / "robot.yaml") == load_robot(str(tmp_path / "robot.yaml")) == spec


def test_overrides_of_a_preset_are_laid_over_it_and_named() -> None:
    spec = load_robot({"preset": "resilient", "n_links": 8, "friction": {"normal_ns_m": 4}, "joint_limit_rad": 1})
    base = PRESETS["resilient"]
    assert (spec.n_links, spec.friction.normal_ns_m, spec.joint_limit_rad) == (8, 4.0, 1.0)
    assert spec.friction.tangential_ns_m == base.friction.tangential_ns_m
    assert spec.actuator == base.actuator
    assert spec.source == f"{base.source}; changed: n_links, friction.normal_ns_m, joint_limit_rad"


def test_a_file_gives_its_name(tmp_path: Path) -> None:
    (tmp_path / "worm.yaml").write_text("n_links: 5\n")
    assert load_robot(tmp_path / "worm.yaml") == RobotSpec(name="worm", n_links=5)
    (tmp_path / "worm.yaml").write_text("preset: resilient\nname: other\n")
    assert load_robot(tmp_path / "worm.yaml").name == "other"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_the_files_that_ship_are_robots(path: Path) -> None:
    spec = load_robot(path)
    assert spec.name == path.stem
    assert spec not in PRESETS.values()
    assert spec.n_substeps >= 1


@pytest.mark.parametrize(
    ("robot", "message"),
    [
        ("resilent", "robot is 'resilent'; expected a preset ("),
        ("worm.yml", "worm.yml does not exist"),
        ({"chain": "spatal"}, "robot.chain is 'spatal'; expected one of spatial"),
        ("configs/robot/spatial/snake_robot_i.yaml", "robot is snake_robot_i, a spatial robot; expected a planar one"),
        ({"preset": "resilient", "n_link": 3}, "robot.n_link is not a setting; did you mean 'n_links'?"),
    ],
)
def test_an_unknown_or_impossible_robot_is_one_clear_line(robot: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_robot(robot)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)

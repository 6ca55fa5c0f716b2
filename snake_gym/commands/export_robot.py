"""Command ``export-robot``: write a robot as a model file for other simulators, MJCF or URDF.

snake-gym export-robot configs/robot/spatial/snake_robot_iii.yaml --out iii.xml
snake-gym export-robot configs/robot/spatial/snake_robot_iii.yaml --set wheels.pairs=true --out iii.urdf
snake-gym export-robot resilient_servo --out planar.xml
"""

from __future__ import annotations

from pathlib import Path

from snake_gym.commands.env_options import command_parser
from snake_gym.config import ConfigError, add_set_option, apply_overrides, prepare_file, run_program, write_atomic
from snake_gym.plugins import load_object
from snake_gym.robot.catalogue import load_any_robot

WRITERS = {".xml": "snake_gym.spatial.mjcf:write_mjcf", ".urdf": "snake_gym.spatial.urdf:write_urdf"}
"""Ending of a model file -> function from a robot to its text."""


def main(argv: list[str] | None = None) -> int:
    """Write the file. Raises ConfigError for what the user has to correct."""
    parser = command_parser("export-robot", __doc__)
    parser.add_argument("robot", help="a preset, or a YAML file of a planar or spatial robot")
    parser.add_argument("--out", required=True, metavar="FILE", help="NAME.xml for MJCF, NAME.urdf for URDF")
    add_set_option(parser, "change settings of the robot")
    args = parser.parse_args(argv)
    spec = load_any_robot(args.robot, apply_overrides({}, args.set))
    suffix = Path(args.out).suffix
    if suffix not in WRITERS:
        raise ConfigError(f"--out is {args.out}; expected a name that ends in .xml (MJCF) or .urdf")
    prepare_file(args.out, "--out")
    write_atomic(args.out, load_object(WRITERS[suffix], suffix)(spec))
    print(f"wrote {args.out}: {spec.name}, {spec.n_joints} joints")
    return 0


if __name__ == "__main__":
    run_program(main)

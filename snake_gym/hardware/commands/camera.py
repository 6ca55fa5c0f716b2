"""Command ``camera``: show the pose that the camera of the pose source finds, and how often it finds one."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path

from snake_gym.config import ConfigError
from snake_gym.hardware.pose.april_tags import CameraPose, load_camera, write_tag


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", help="YAML file with camera and tags, as configs/hardware/camera.yaml")
    parser.add_argument("--file", help="a video or image sequence (frames/%%04d.png) instead of the camera")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long (%(default)s)")
    parser.add_argument("--print-tags", type=Path, metavar="DIR", help="write the tags as images to print, and end")


def run(options: argparse.Namespace) -> int:
    config = load_camera(options.config)
    if options.print_tags is not None:
        options.print_tags.mkdir(parents=True, exist_ok=True)
        for tag_id in (config.head.id, *(tag.id for tag in config.floor)):
            write_tag(tag_id, options.print_tags / f"tag{tag_id}.png")
        print(f"wrote the tags to {options.print_tags}; print them so that the black square has its size_m")
        return 0
    camera = CameraPose(config if options.file is None else replace(config, camera=options.file), stale_s=1.0)
    give_up = time.monotonic() + options.seconds
    try:
        while time.monotonic() < give_up and not (camera.n_failures and options.file is not None and camera.n_frames):
            time.sleep(0.5)
            if camera.n_failures and not camera.n_frames:
                raise ConfigError(camera.trouble)
            pose = camera.read(time.monotonic())
            where = f"x {pose.xy_w[0]:+.3f} y {pose.xy_w[1]:+.3f} m, {math.degrees(pose.angle):+.1f} degrees"
            state = where if pose.valid else "no pose"
            seen = f"{camera.n_seen}/{camera.n_frames} pictures with a pose"
            print(f"{seen}; {state}; {camera.trouble or 'good'}", flush=True)
    finally:
        camera.close()
    return int(camera.n_seen == 0)

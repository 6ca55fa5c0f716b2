"""Command ``camera``: show the pose that the camera of the pose source finds, and how often it finds one."""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import replace
from pathlib import Path

from snake_gym.config import ConfigError
from snake_gym.hardware.pose.april_tags import CameraPose, load_camera, tag_image


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", help="YAML file with camera and tags")
    parser.add_argument("--file", help="a video or image sequence (frames/%%04d.png) instead of the camera")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long (%(default)s)")
    parser.add_argument("--print-tags", metavar="DIR", help="write the tags of the file as images to print, and end")


def run(options: argparse.Namespace) -> int:
    if options.config is None:
        raise ConfigError("the YAML file with camera and tags is missing, as configs/hardware/camera.yaml")
    config = load_camera(options.config)
    if options.print_tags is not None:
        return _print_tags([tag.id for tag in config.floor] + [config.head.id], Path(options.print_tags))
    if options.file is not None:
        config = replace(config, camera=options.file)
    camera = CameraPose(config, stale_s=1.0)
    give_up = time.monotonic() + options.seconds
    try:
        while time.monotonic() < give_up:
            time.sleep(0.5)
            if camera.n_failures and not camera.n_frames:
                raise ConfigError(camera.trouble)
            pose = camera.read(time.monotonic())
            where = f"x {pose.xy_w[0]:+.3f} y {pose.xy_w[1]:+.3f} m, {math.degrees(pose.angle):+.1f} degrees"
            state = where if pose.valid else "no pose"
            print(
                f"{camera.n_seen}/{camera.n_frames} pictures with a pose; {state}; {camera.trouble or 'good'}",
                flush=True,
            )
            if camera.n_failures and options.file is not None:
                break
    finally:
        camera.close()
    return int(camera.n_seen == 0)


def _print_tags(ids: list[int], folder: Path) -> int:
    import cv2

    folder.mkdir(parents=True, exist_ok=True)
    for tag_id in ids:
        # A white margin of one cell; the side of the black square is what size_m says.
        image = cv2.copyMakeBorder(tag_image(tag_id, 800), 100, 100, 100, 100, cv2.BORDER_CONSTANT, value=255)
        cv2.imwrite(str(folder / f"tag{tag_id}.png"), image)
    print(f"wrote {len(ids)} tags to {folder}; print them so that the black square has its size_m")
    return 0

"""Pose of the head from a camera above the robot: AprilTags (family 36h11) on the floor and one on the head.

Tags with known places on the floor show where the camera is in every frame, so its own place need not be exact; the tag
on the head, at a known height above the floor, then gives the pose. The camera's matrix and distortion come from any
chessboard calibration.

Detection and refinement of corners are OpenCV's (Olson, AprilTag: a robust and flexible visual fiducial system, ICRA
2011; Wang and Olson, AprilTag 2, IROS 2016). A thread takes and reads the pictures; whatever goes wrong there
(camera pulled, frame damaged) makes the pose invalid and is counted, and the camera is opened again. ``read`` never
waits.
"""

from __future__ import annotations

import math
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from snake_gym.config import Settings, build, load_yaml, require
from snake_gym.config.settings import NonNegative, Positive, PositiveCount
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.robot.spec import FloatArray

require("a camera", "cv2")
import cv2  # noqa: E402

_UPRIGHT = np.array([[-0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])
"""Corners of a tag of side 1 that looks along x."""
_DICTIONARY = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)
TagId = Annotated[int, Field(ge=0, le=586)]
"""Number of a tag of the family 36h11."""
_MARGIN = 0.25
"""Surroundings in which corners are refined, as a share of the tag."""
_REOPEN_S = 1.0
"""Time between attempts to open the camera [s]."""
_MOST_FLOOR_ERROR_M = 0.01
"""Error beyond which floor tags do not fit each other [m]."""
_FLOOR_MEMORY_S = 3.0
"""Time for which a view of more floor tags counts for more [s]."""


class FloorTag(Settings):
    """Tag that lies on the floor."""

    id: TagId
    x_m: float
    y_m: float
    angle_rad: float = 0.0
    """Direction of the print's right side, world frame."""
    size_m: Positive = 0.1
    """Side of the black square."""

    def corners(self) -> FloatArray:
        """Return its corners (4, 2) [m], world frame."""
        cos, sin = math.cos(self.angle_rad), math.sin(self.angle_rad)
        return self.size_m * _UPRIGHT @ np.array([[cos, sin], [-sin, cos]]) + (self.x_m, self.y_m)


class HeadTag(Settings):
    """Tag on the robot's head link."""

    id: TagId = 0
    size_m: Positive = 0.06
    """Side of the black square."""
    height_m: float = 0.0
    """Height above the floor."""
    forward_m: float = 0.0
    """Distance of the tag's centre from the centre of the head link, along it."""
    left_m: float = 0.0
    """Distance of the tag's centre from the centre of the head link, to its left."""
    angle_rad: float = 0.0
    """Direction of the print's right side from the head link's."""

    def link_pose(self, corners: FloatArray) -> tuple[FloatArray, float]:
        """Return centre (2,) [m] and direction [rad] of the head link from the tag's corners (4, 2) [m], world frame.
        The direction is that of the square nearest to them (Procrustes)."""
        centre = corners.mean(axis=0)
        arms = ((corners - centre) @ [1.0, 1.0j]) * (_UPRIGHT @ [1.0, -1.0j])
        angle = math.remainder(float(np.angle(arms.sum())) - self.angle_rad, 2.0 * math.pi)
        cos, sin = math.cos(angle), math.sin(angle)
        return centre - np.array([[cos, -sin], [sin, cos]]) @ (self.forward_m, self.left_m), angle


class CameraConfig(Settings):
    """Camera above the robot, with the tags that it sees."""

    floor: Annotated[tuple[FloorTag, ...], Field(min_length=1)]
    head: HeadTag
    matrix: tuple[Positive, Positive, float, float]
    """Focal lengths and centre fx, fy, cx, cy [pixels]."""
    distortion: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)
    """Coefficients k1, k2, p1, p2, k3 of OpenCV's model."""
    camera: int | str = 0
    """Number of the device, or a video file or image sequence (``frames/%04d.png``)."""
    width: PositiveCount = 1280
    """Width asked of the device [pixels]."""
    height: PositiveCount = 720
    """Height asked of the device [pixels]."""
    latency_s: NonNegative = 0.03
    """Time from exposure to the frame's arrival."""

    def check(self) -> None:
        ids = [tag.id for tag in self.floor] + [self.head.id]
        if len(set(ids)) != len(ids):
            raise ValueError(f"floor and head tags have ids {ids}; expected each id once")


class TagReader:
    """Reader of pictures; it keeps the camera's place between them because the camera does not move."""

    def __init__(self, config: CameraConfig) -> None:
        parameters = cv2.aruco.DetectorParameters()
        self._detector = cv2.aruco.ArucoDetector(_DICTIONARY, parameters)
        parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_APRILTAG
        self._refiner = cv2.aruco.ArucoDetector(_DICTIONARY, parameters)
        self.config = config
        self.trouble = ""
        """Reason why the last picture gave no pose."""
        fx, fy, cx, cy = config.matrix
        self._matrix: FloatArray = np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
        self._head_plane: FloatArray | None = None
        self._floor_tags, self._floor_s = 0, -math.inf

    def read(self, image: Any, stamp_s: float) -> PoseSample | None:
        """Return the head's pose in a grey or BGR picture taken at ``stamp_s`` [s], or None (see ``trouble``)."""
        grey = image if image.ndim == 2 else cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        corners, ids, _ = self._detector.detectMarkers(grey)
        found = [] if ids is None else zip(ids.ravel().tolist(), corners, strict=True)
        seen = {tag_id: self._undistorted(self._refined(grey, corner[0])) for tag_id, corner in found}
        self._look_at_floor(seen, stamp_s)
        head = self.config.head
        if self._head_plane is None:
            self.trouble = "no floor tag in sight"
        elif head.id not in seen:
            self.trouble = "the head's tag is not in sight"
        else:
            self.trouble = ""
            return PoseSample(*head.link_pose(_through(self._head_plane, seen[head.id])), stamp_s, True)
        return None

    def _refined(self, grey: Any, corners: Any) -> Any:
        """Return refined corners (4, 2) [pixels], from the tag's surroundings: the whole picture would take 0.2 s."""
        margin = _MARGIN * np.ptp(corners, axis=0).max()
        (left, top), (right, low) = np.maximum(corners.min(axis=0) - margin, 0.0), corners.max(axis=0) + margin
        left, top = int(left), int(top)
        again, _, _ = self._refiner.detectMarkers(grey[top : int(low), left : int(right)])
        near = [one[0] + (left, top) for one in again if np.abs(one[0] + (left, top) - corners).max() < margin]
        return near[0] if near else corners

    def _undistorted(self, corners: Any) -> FloatArray:
        """Return corners (4, 2) [pixels] as a camera without distortion sees them."""
        points = np.asarray(corners, dtype=np.float64).reshape(4, 1, 2)
        undone = cv2.undistortPoints(points, self._matrix, np.array(self.config.distortion), P=self._matrix)
        return np.asarray(undone[:, 0])

    def _look_at_floor(self, seen: dict[int, FloatArray], stamp_s: float) -> None:
        tags = [tag for tag in self.config.floor if tag.id in seen]
        if not tags or (len(tags) < self._floor_tags and stamp_s - self._floor_s <= _FLOOR_MEMORY_S):
            return
        places = np.concatenate([tag.corners() for tag in tags])
        images = np.concatenate([seen[tag.id] for tag in tags])
        try:
            floor, head_plane = self._planes(places, images)
        except (cv2.error, np.linalg.LinAlgError):  # three corners in line, or all in one point
            return
        off = _through(floor, images) - places
        if math.sqrt(float((off**2).sum(axis=1).mean())) <= _MOST_FLOOR_ERROR_M:
            self._head_plane, self._floor_tags, self._floor_s = head_plane, len(tags), stamp_s

    def _planes(self, places: FloatArray, images: FloatArray) -> list[FloatArray]:
        """Return the maps (3, 3) from the picture [pixels] to the floor and to the plane of the head's tag [m], from
        places (K, 2) on the floor and their images (K, 2)."""
        on_floor = np.column_stack([places, np.zeros(len(places))])
        _, turn, floor_at = cv2.solvePnP(on_floor, images, self._matrix, None, flags=cv2.SOLVEPNP_IPPE)
        turn, floor_at = cv2.solvePnPRefineLM(on_floor, images, self._matrix, None, turn, floor_at)
        x, y, up = np.hsplit(cv2.Rodrigues(turn)[0], 3)
        heights = 0.0, self.config.head.height_m
        return [np.linalg.inv(self._matrix @ np.hstack([x, y, floor_at + height * up])) for height in heights]


def _through(plane: FloatArray, images: FloatArray) -> FloatArray:
    """Return the points (K, 2) [m] of a plane from their images (K, 2) [pixels]."""
    return np.asarray(cv2.perspectiveTransform(images[None], plane)[0])


class CameraPose(PoseSource):
    """Pose from a camera's pictures, read by a thread; a pose older than ``stale_s`` [s] is not valid."""

    def __init__(self, config: CameraConfig, stale_s: float = 0.5) -> None:
        self.n_frames = self.n_seen = self.n_failures = 0
        """Numbers of pictures taken, of those with a pose, and of failures of the camera."""
        self._trouble = "no picture yet"
        self._reader, self._stale_s = TagReader(config), stale_s
        self._pose = NO_POSE
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="camera", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        return self._trouble

    def read(self, now_s: float) -> PoseSample:
        pose = self._pose  # one object, which the thread replaces
        return pose._replace(valid=now_s - pose.stamp_s <= self._stale_s)

    def close(self) -> None:
        self._ends.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._ends.is_set():
            camera: Any = None
            try:
                camera = open_device(self._reader.config)
                while not self._ends.is_set() and self._take(camera):
                    pass
                self._trouble = "the camera gives no pictures"
            except Exception as error:  # OpenCV and drivers raise what they like; the loop above must go on
                self._trouble = f"camera {self._reader.config.camera}: {error}"
            finally:
                if camera is not None:
                    camera.release()
            self.n_failures += 1
            self._ends.wait(_REOPEN_S)

    def _take(self, camera: Any) -> bool:
        """Read one picture. Return False if there is none."""
        good, image = camera.read()
        if not good:
            return False
        stamp_s = time.monotonic() - self._reader.config.latency_s
        self.n_frames += 1
        pose = self._reader.read(image, stamp_s)
        self._trouble = self._reader.trouble
        if pose is not None:
            self.n_seen += 1
            turned = math.remainder(pose.angle - self._pose.angle, 2.0 * math.pi)  # continuous over whole turns
            self._pose = pose._replace(angle=self._pose.angle + turned)
        return True


def load_camera(path: str | Path) -> CameraConfig:
    """Load camera and tags from a YAML file. Raises ConfigError."""
    return build(CameraConfig, load_yaml(path), str(path))


def write_tag(tag_id: int, path: Path) -> None:
    """Write the print of a tag: its black square of 800 pixels, in a white margin of one cell."""
    square = cv2.aruco.generateImageMarker(_DICTIONARY, tag_id, 800)
    cv2.imwrite(str(path), cv2.copyMakeBorder(square, 100, 100, 100, 100, cv2.BORDER_CONSTANT, value=255))


def open_device(config: CameraConfig) -> Any:
    """Open the camera. Raises OSError."""
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # the error below says it
    camera = cv2.VideoCapture(config.camera)
    if not camera.isOpened():
        raise OSError("it cannot be opened")
    if isinstance(config.camera, int):
        camera.set(cv2.CAP_PROP_FRAME_WIDTH, config.width)
        camera.set(cv2.CAP_PROP_FRAME_HEIGHT, config.height)
        camera.set(cv2.CAP_PROP_BUFFERSIZE, 1)
    return camera

"""Pose of the head from a camera above the robot: AprilTags (family 36h11) on the floor and one on the head.

Tags with known places on the floor give the map from image to floor in every frame, so the camera's own place need not
be exact; the tag on the head then gives the pose. With the camera's matrix and distortion (from any chessboard
calibration) lens distortion and the height of the head's tag above the floor are taken into account; without them the
picture is assumed to be free of distortion and the tag to lie on the floor, which displaces a tag at height h, seen at
an angle a from the vertical, by ``h tan a``.

Detection and refinement of corners are OpenCV's (Olson, AprilTag: a robust and flexible visual fiducial system, ICRA
2011; Wang and Olson, AprilTag 2, IROS 2016). A thread takes and reads the pictures; whatever goes wrong there
(camera pulled, frame damaged) makes the pose invalid and is counted, and the camera is opened again. ``read`` never
waits.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError, Settings, build, load_yaml, require
from snake_gym.config.settings import NonNegative, Positive, PositiveCount
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.robot.spec import FloatArray

_UPRIGHT = np.array([[-0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])


def tag_corners(size_m: float, xy_m: FloatArray, angle_rad: float) -> FloatArray:
    """Return the corners (4, 2) [m] of a tag of side ``size_m``, world frame."""
    cos, sin = math.cos(angle_rad), math.sin(angle_rad)
    return size_m * _UPRIGHT @ np.array([[cos, sin], [-sin, cos]]) + np.asarray(xy_m)


def fit_square(corners_m: FloatArray, size_m: float) -> tuple[FloatArray, float, float]:
    """Fit a tag of side ``size_m`` to corners (4, 2) [m] (Procrustes without scale). Return its centre (2,) [m], the
    direction of its x axis [rad], and the root mean square distance of the corners [m]."""
    centre = corners_m.mean(axis=0)
    arms, square = (corners_m - centre) @ [1.0, 1.0j], size_m * _UPRIGHT @ [1.0, 1.0j]
    angle = float(np.angle((square.conj() * arms).sum()))
    off = np.abs(arms - square * np.exp(1.0j * angle))
    return centre, angle, math.sqrt(float((off**2).mean()))


TagId = Annotated[int, Field(ge=0, le=586)]
"""Number of a tag of the family 36h11."""
_MARGIN = 0.25
"""Surroundings of a tag in which its corners are refined, as a share of its size."""
_REOPEN_S = 1.0
"""Time between attempts to open the camera [s]."""
_FLOOR_MEMORY_S = 3.0
"""Time for which a map of the floor is kept while fewer tags than it was made from are seen [s]."""
_MISFIT_SHARE = 0.1
"""Largest distance of a head tag's corners from a square at which it is accepted, as a share of its side."""


class FloorTag(Settings):
    """Tag that lies on the floor."""

    id: TagId
    x_m: float
    y_m: float
    angle_rad: float = 0.0
    """Direction of the print's right side, world frame."""
    size_m: Positive = 0.1
    """Side of the black square."""


class HeadTag(Settings):
    """Tag on the robot's head link."""

    id: TagId = 0
    size_m: Positive = 0.06
    """Side of the black square."""
    height_m: float = 0.0
    """Height above the floor; needs the camera's matrix."""
    forward_m: float = 0.0
    """Distance of the tag's centre from the centre of the head link, along it."""
    left_m: float = 0.0
    """Distance of the tag's centre from the centre of the head link, to its left."""
    angle_rad: float = 0.0
    """Direction of the print's right side from the head link's."""


class CameraConfig(Settings):
    """Camera above the robot, with the tags that it sees."""

    floor: tuple[FloorTag, ...]
    head: HeadTag
    camera: int | str = 0
    """Number of the device, or a video file or image sequence (``frames/%04d.png``)."""
    width: PositiveCount = 1280
    """Width asked of the device [pixels]."""
    height: PositiveCount = 720
    """Height asked of the device [pixels]."""
    matrix: tuple[Positive, Positive, float, float] | None = None
    """Focal lengths and centre fx, fy, cx, cy [pixels]; None: not known."""
    distortion: tuple[float, ...] = ()
    """Coefficients k1, k2, p1, p2, k3 of OpenCV's model; they need ``matrix``."""
    latency_s: NonNegative = 0.03
    """Time from exposure to the frame's arrival."""
    max_floor_error_m: Positive = 0.01
    """Error beyond which floor tags that do not fit each other are not used."""

    def check(self) -> None:
        ids = [tag.id for tag in self.floor] + [self.head.id]
        if not self.floor or len(set(ids)) != len(ids):
            raise ValueError(f"floor and head tags have ids {ids}; expected at least one on the floor, each id once")
        if self.matrix is None and (self.distortion or self.head.height_m != 0.0):
            raise ValueError("matrix is missing; expected fx, fy, cx, cy, which distortion and head.height_m need")
        if self.distortion and len(self.distortion) not in (4, 5, 8):
            raise ValueError(f"distortion has {len(self.distortion)} numbers; expected 4, 5 or 8")


class Sighting(NamedTuple):
    """Pose of the head that was found in one picture."""

    xy_w: FloatArray
    """(2,) [m] centre of the head link."""
    angle: float
    """Direction of the head link [rad]."""
    n_floor_tags: int


class TagReader:
    """Reader of pictures, which keeps the map of the floor between them because the camera does not move.

    Raises ConfigError: OpenCV is not installed.
    """

    def __init__(self, config: CameraConfig) -> None:
        cv2 = _opencv()
        parameters, dictionary = cv2.aruco.DetectorParameters(), _dictionary()
        self._detector = cv2.aruco.ArucoDetector(dictionary, parameters)
        parameters.cornerRefinementMethod = cv2.aruco.CORNER_REFINE_APRILTAG
        self._refiner = cv2.aruco.ArucoDetector(dictionary, parameters)
        self.config = config
        self.trouble = ""
        """Reason why the last picture gave no pose."""
        self._matrix: FloatArray | None = None
        if config.matrix is not None:
            fx, fy, cx, cy = config.matrix
            self._matrix = np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])
        self._head_plane: FloatArray | None = None
        self._floor_tags, self._floor_s = 0, -math.inf

    def read(self, image: Any, stamp_s: float) -> Sighting | None:
        """Return the head's pose in a grey or BGR picture taken at ``stamp_s`` [s], or None (see ``trouble``)."""
        grey = image if image.ndim == 2 else _opencv().cvtColor(image, _opencv().COLOR_BGR2GRAY)
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
            xy_m, print_angle, misfit_m = fit_square(_through(self._head_plane, seen[head.id]), head.size_m)
            if misfit_m <= _MISFIT_SHARE * head.size_m:
                self.trouble = ""
                angle = math.remainder(print_angle - head.angle_rad, 2.0 * math.pi)
                cos, sin = math.cos(angle), math.sin(angle)
                offset = np.array([cos * head.forward_m - sin * head.left_m, sin * head.forward_m + cos * head.left_m])
                return Sighting(xy_m - offset, angle, self._floor_tags)
            self.trouble = f"the head's tag is off its shape by {1e3 * misfit_m:.1f} mm"
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
        """Return corners (4, 2) [pixels], as a camera without distortion sees them if the matrix is known."""
        points = np.asarray(corners, dtype=np.float64).reshape(4, 1, 2)
        if self._matrix is not None:
            distortion = np.array(self.config.distortion)
            points = _opencv().undistortPoints(points, self._matrix, distortion, P=self._matrix)
        return points[:, 0]

    def _look_at_floor(self, seen: dict[int, FloatArray], stamp_s: float) -> None:
        tags = [tag for tag in self.config.floor if tag.id in seen]
        if not tags or (len(tags) < self._floor_tags and stamp_s - self._floor_s <= _FLOOR_MEMORY_S):
            return
        places = np.concatenate([tag_corners(t.size_m, np.array([t.x_m, t.y_m]), t.angle_rad) for t in tags])
        images = np.concatenate([seen[tag.id] for tag in tags])
        try:
            floor, head_plane = self._planes(places, images)
        except (_opencv().error, np.linalg.LinAlgError):  # three corners in line, or all in one point
            return
        off = _through(floor, images) - places
        if math.sqrt(float((off**2).sum(axis=1).mean())) <= self.config.max_floor_error_m:
            self._head_plane, self._floor_tags, self._floor_s = head_plane, len(tags), stamp_s

    def _planes(self, places: FloatArray, images: FloatArray) -> list[FloatArray]:
        """Return the maps (3, 3) from the picture [pixels] to the floor and to the plane of the head's tag [m], from
        places (K, 2) on the floor and their images (K, 2)."""
        cv2 = _opencv()
        if self._matrix is None:
            floor, _ = cv2.findHomography(places, images)
            return 2 * [np.linalg.inv(floor)]
        on_floor = np.column_stack([places, np.zeros(len(places))])
        _, turn, floor_at = cv2.solvePnP(on_floor, images, self._matrix, None, flags=cv2.SOLVEPNP_IPPE)
        turn, floor_at = cv2.solvePnPRefineLM(on_floor, images, self._matrix, None, turn, floor_at)
        x, y, up = np.hsplit(cv2.Rodrigues(turn)[0], 3)
        heights = 0.0, self.config.head.height_m
        return [np.linalg.inv(self._matrix @ np.hstack([x, y, floor_at + height * up])) for height in heights]


def _through(plane: FloatArray, images: FloatArray) -> FloatArray:
    """Return the points (K, 2) [m] of a plane from their images (K, 2) [pixels]."""
    return np.asarray(_opencv().perspectiveTransform(images[None], plane)[0])


class CameraPose(PoseSource):
    """Pose from a camera's pictures, read by a thread; a pose older than ``stale_s`` [s] is not valid.

    ``open_camera`` opens the camera, a ``cv2.VideoCapture`` or anything that acts like it, again after it was lost; it
    may raise any exception.
    """

    def __init__(
        self, config: CameraConfig, stale_s: float = 0.5, open_camera: Callable[[], Any] | None = None
    ) -> None:
        self.n_frames = self.n_seen = self.n_failures = 0
        """Numbers of pictures taken, of those with a pose, and of failures of the camera."""
        self._trouble = "no picture yet"
        self._reader = TagReader(config)
        self._latency_s, self._stale_s = config.latency_s, stale_s
        self._open = open_camera or (lambda: _open_device(config))
        self._lock = threading.Lock()
        self._pose = NO_POSE
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="camera", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        return self._trouble

    def read(self, now_s: float) -> PoseSample:
        with self._lock:
            pose = self._pose
        return pose._replace(xy_w=pose.xy_w.copy(), valid=now_s - pose.stamp_s <= self._stale_s)

    def close(self) -> None:
        self._ends.set()
        self._thread.join(2.0)

    def _run(self) -> None:
        while not self._ends.is_set():
            camera: Any = None
            try:
                camera = self._open()
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
        stamp_s = time.monotonic() - self._latency_s
        self.n_frames += 1
        sighting = self._reader.read(image, stamp_s)
        self._trouble = self._reader.trouble
        if sighting is not None:
            self.n_seen += 1
            with self._lock:
                # Continuous over whole turns.
                angle = self._pose.angle + math.remainder(sighting.angle - self._pose.angle, 2.0 * math.pi)
                self._pose = PoseSample(sighting.xy_w, angle, stamp_s, True)
        return True


def load_camera(path: str | Path) -> CameraConfig:
    """Load camera and tags from a YAML file. Raises ConfigError."""
    return build(CameraConfig, load_yaml(path), str(path))


def open_camera(config_path: str | Path | None, stale_s: float) -> CameraPose:
    """Open the pose source that the YAML file describes. Raises ConfigError: no file, no OpenCV, wrong settings."""
    if config_path is None:
        raise ConfigError("pose.camera is missing; expected a YAML file with camera and tags")
    return CameraPose(load_camera(config_path), stale_s)


def tag_image(tag_id: int, pixels: int) -> Any:
    """Return the print of a tag: its black square ``pixels`` wide, without the white margin that it needs around it."""
    return _opencv().aruco.generateImageMarker(_dictionary(), tag_id, pixels)


def _dictionary() -> Any:
    return _opencv().aruco.getPredefinedDictionary(_opencv().aruco.DICT_APRILTAG_36h11)


def _open_device(config: CameraConfig) -> Any:
    cv2 = _opencv()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)  # the error below tells it
    camera = cv2.VideoCapture(config.camera)
    if not camera.isOpened():
        raise OSError("it cannot be opened")
    if isinstance(config.camera, int):
        camera.set(cv2.CAP_PROP_FRAME_WIDTH, config.width)
        camera.set(cv2.CAP_PROP_FRAME_HEIGHT, config.height)
        camera.set(cv2.CAP_PROP_BUFFERSIZE, 1)
    return camera


def _opencv() -> Any:
    require("a camera", "cv2")
    import cv2

    return cv2

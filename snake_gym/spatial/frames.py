"""Pictures of spatial robots by MuJoCo's renderer, in a window or without a screen.

Without a screen MuJoCo needs EGL or OSMesa: set ``MUJOCO_GL=egl`` (with a driver that has it, such as Mesa's) or
``MUJOCO_GL=osmesa`` (package libosmesa6 of Debian and Ubuntu) before the first import of mujoco.
"""

from __future__ import annotations

import warnings
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.spatial.mjcf import write_mjcf

WIDTH, HEIGHT = 640, 360
TARGET_RGBA = (0.85, 0.1, 0.1, 0.6)
TARGET_HEIGHT_M = 0.5
_FAILED: list[str] = []
"""Why this process cannot draw; a second trial would end it (glfw)."""


def _open_windows() -> None:
    """Raise what GLFW says where no window can be opened: MuJoCo's viewer would find out in a thread, and end all."""
    import glfw

    with warnings.catch_warnings():
        warnings.simplefilter("error", glfw.GLFWError)
        if not glfw.init():
            raise RuntimeError("no window can be opened")


class SpatialView:
    """View of one world of a core of spatial robots, by the camera that the settings name (``view``).

    Args:
        mode: "rgb_array": ``draw`` returns frames; "human": it shows them in MuJoCo's own viewer.
    """

    def __init__(self, core: Any, world: int, mode: str = "rgb_array") -> None:
        robot = core.robot
        self._robot, self._task, self._world, self._mode = robot, core.task, world, mode
        self._model = mujoco.MjModel.from_xml_string(write_mjcf(robot.spec, robot.ground, shade=True))
        self._data = mujoco.MjData(self._model)
        self._view: str = core.config.view
        self._camera = mujoco.MjvCamera()
        self._camera.azimuth, self._camera.elevation, self._camera.distance = 60.0, -35.0, 1.1 * robot.spec.length_m
        self._renderer: Any = None
        self._viewer: Any = None
        if _FAILED:
            raise ConfigError(_FAILED[0])
        try:
            if mode == "human":
                from mujoco import viewer

                _open_windows()
                self._viewer = viewer.launch_passive(self._model, self._data)
                if self._view != "beside":
                    self._viewer.cam.type = mujoco.mjtCamera.mjCAMERA_FIXED
                    self._viewer.cam.fixedcamid = self._model.camera(self._view).id
            else:
                self._renderer = mujoco.Renderer(self._model, HEIGHT, WIDTH)
        except Exception as error:  # MuJoCo raises what its graphics library raises
            _FAILED.append(
                "MuJoCo cannot draw here; expected a screen, or MUJOCO_GL=egl or osmesa (apt-get install libosmesa6) "
                f"in the environment with render_mode rgb_array ({type(error).__name__}: {error})"
            )
            raise ConfigError(_FAILED[0]) from error

    def draw(self) -> NDArray[np.uint8] | None:
        """Return the present frame (H, W, 3), or show it in the viewer."""
        self._take()
        if self._viewer is not None:
            self._viewer.sync()
            return None
        self._renderer.update_scene(self._data, self._camera if self._view == "beside" else self._view)
        self._mark(self._renderer.scene)
        return np.asarray(self._renderer.render())

    def _take(self) -> None:
        """Bring the model to the world's present state."""
        robot, model = self._robot, self._model
        own = robot.own_model(self._world)
        if model.nhfield and (model.hfield_data != own.hfield_data).any():
            model.hfield_data[:] = own.hfield_data
            if self._renderer is not None:  # the graphics card has a copy
                mujoco.mjr_uploadHField(model, self._renderer._mjr_context, 0)
        mujoco.mj_setState(model, self._data, robot.state.physics[self._world], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_kinematics(model, self._data)
        mujoco.mj_camlight(model, self._data)
        state = robot.state
        self._camera.lookat[:] = (*state.centre_xy[self._world], state.centre_z[self._world])

    def _mark(self, scene: Any) -> None:
        """Add the targets to the scene, as posts."""
        for x, y in self._task.targets_xy[self._world]:
            if scene.ngeom >= scene.maxgeom:
                return
            mujoco.mjv_initGeom(
                scene.geoms[scene.ngeom], mujoco.mjtGeom.mjGEOM_CYLINDER, np.array([0.06, 0.06, TARGET_HEIGHT_M]),
                np.array([x, y, TARGET_HEIGHT_M]), np.eye(3).ravel(), np.array(TARGET_RGBA, np.float32),
            )  # fmt: skip
            scene.ngeom += 1

    def close(self) -> None:
        """Free the graphics; may be called twice."""
        for part in (self._renderer, self._viewer):
            if part is not None:
                part.close()
        self._renderer = self._viewer = None

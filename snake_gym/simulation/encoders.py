"""Joint encoders that fail: dead (the reading stays what it was), biased, or noisy.

Only the reading fails, as on a bus whose servo regulates by a sensor of its own: the joint moves as commanded, what the
policy or controller is told is wrong. The centre of mass derived from the joint angles is wrong with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config.settings import Limit
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.faults import LATEST_S
from snake_gym.simulation.streams import RandomStreams

EncoderFaultKind = Literal["dead", "biased", "noisy"]
GOOD, DEAD, BIASED, NOISY = 0, 1, 2, 3
ENCODER_CODES = {"good": GOOD, "dead": DEAD, "biased": BIASED, "noisy": NOISY}


LARGEST = 1e6
"""[rad, rad/s, m] of a sensor's error: more would be no reading."""


def check_size(name: str, value: float, low: float = 0.0) -> None:
    """Raise ValueError unless ``value`` is a number from ``low`` to ``LARGEST``."""
    if not low <= value <= LARGEST:
        expected = "finite and >= 0, at most" if low == 0.0 else "finite, of size at most"
        raise ValueError(f"{name} is {value:g}; expected {expected} {LARGEST:g}")


@dataclass(frozen=True)
class EncoderFault:
    """One encoder fault of a list. ``bias_rad`` is for biased, ``noise_rad`` and ``noise_rad_s`` for noisy."""

    joint: int
    """Numbered from 1 at the tail."""
    kind: EncoderFaultKind = "dead"
    onset_s: float = 0.0
    duration_s: Limit = math.inf
    bias_rad: float = 0.2
    noise_rad: float = 0.1
    noise_rad_s: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.onset_s <= LATEST_S:
            raise ValueError(f"onset_s is {self.onset_s:g}; expected finite and >= 0, at most {LATEST_S:g}")
        for name in ("noise_rad", "noise_rad_s"):
            check_size(name, getattr(self, name))
        check_size("bias_rad", self.bias_rad, -LARGEST)
        if not self.duration_s > 0.0:
            raise ValueError(f"duration_s is {self.duration_s:g}; expected > 0 (.inf: for good)")


@dataclass(frozen=True)
class EncoderFaultConfig:
    """Encoder faults of an episode. The number of failed encoders is uniform in [n_min, n_max]."""

    n_min: int = 0
    n_max: int = 0
    kinds: tuple[EncoderFaultKind, ...] = ("dead",)
    """Each failed encoder draws one of these: dead (reading frozen, rate 0), biased, noisy."""
    onset_min_s: float = 0.0
    onset_max_s: float = 0.0
    """Each fault begins at a time uniform in [onset_min_s, onset_max_s]."""
    duration_s: Limit = math.inf
    """How long a fault lasts."""
    bias_rad: float = 0.2
    """Error of a biased encoder, to either side at random."""
    noise_rad: float = 0.1
    """Standard deviation that a noisy encoder's angle has more."""
    noise_rad_s: float = 0.5
    """The same of its rate."""
    events: tuple[EncoderFault, ...] = ()
    """A list of faults instead of drawn ones, each {joint, kind, onset_s, duration_s, bias_rad, noise_rad,
    noise_rad_s}; all but joint may be left out."""

    def __post_init__(self) -> None:
        if not 0 <= self.n_min <= self.n_max:
            raise ValueError(f"encoder_faults.n_min is {self.n_min}, n_max {self.n_max}; expected 0 <= n_min <= n_max")
        if not 0.0 <= self.onset_min_s <= self.onset_max_s <= LATEST_S:
            raise ValueError(
                f"encoder_faults.onset_min_s is {self.onset_min_s:g}, onset_max_s {self.onset_max_s:g}; "
                f"expected 0 <= onset_min_s <= onset_max_s <= {LATEST_S:g}"
            )
        if not self.kinds:
            raise ValueError("encoder_faults.kinds is empty; expected some of dead, biased, noisy")
        if not self.duration_s > 0.0:
            raise ValueError(f"encoder_faults.duration_s is {self.duration_s:g}; expected > 0")
        for name in ("bias_rad", "noise_rad", "noise_rad_s"):
            check_size(f"encoder_faults.{name}", getattr(self, name))
        if self.events and self.n_max > 0:
            raise ValueError(
                "encoder_faults.events and encoder_faults.n_max are both set; expected a list or a distribution"
            )

    @property
    def any(self) -> bool:
        return self.n_max > 0 or bool(self.events)

    def check_joints(self, n_joints: int) -> None:
        """Raise ValueError unless the robot has the joints whose encoders shall fail."""
        joints = [event.joint for event in self.events]
        for joint in joints:
            if not 1 <= joint <= n_joints:
                raise ValueError(
                    f"encoder_faults.events has joint {joint}; expected 1 to {n_joints} (the robot's joints)"
                )
        if len(set(joints)) != len(joints):
            raise ValueError(f"encoder_faults.events is {joints}; expected each joint once")
        if self.n_max > n_joints:
            raise ValueError(f"encoder_faults.n_max is {self.n_max}; expected at most {n_joints} (the robot's joints)")


class Encoders:
    """The joint encoders of W worlds: which of them fail in the present episodes, and what the dead ones last said.

    Args:
        config: their faults.
        n_worlds: W.
        n_joints: J.
    """

    def __init__(self, config: EncoderFaultConfig, n_worlds: int, n_joints: int) -> None:
        config.check_joints(n_joints)
        self.config = config
        shape = (n_worlds, n_joints)
        self.kind: NDArray[np.int64] = np.zeros(shape, np.int64)
        self.onset_s: FloatArray = np.zeros(shape)
        self.end_s: FloatArray = np.full(shape, np.inf)
        self.bias_rad: FloatArray = np.zeros(shape)
        self.noise_rad: FloatArray = np.zeros(shape)
        self.noise_rad_s: FloatArray = np.zeros(shape)
        self.last_rad: FloatArray = np.full(shape, np.nan)
        """What each encoder last said before it died; nan: nothing yet."""
        self.streams = RandomStreams("encoders", n_worlds)

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: Any) -> None:
        """Draw the faults of new episodes of the worlds ``rows`` (index array); arguments as of RandomStreams."""
        if not self.config.any:
            return
        self.streams.begin(seeds, episodes, rows)
        self.last_rad[rows] = np.nan
        if self.config.events:
            self._list_faults(rows)
        else:
            self._draw_faults(rows)

    def read(
        self, angle: FloatArray, rate: FloatArray, time_s: FloatArray, rows: Any = slice(None)
    ) -> tuple[FloatArray, FloatArray]:
        """Readings (M, J) of joints at ``angle`` [rad] and ``rate`` [rad/s] in worlds ``rows`` at ``time_s`` [s]."""
        if not self.config.any:
            return angle, rate
        time = time_s[:, None]
        kind = np.where((time >= self.onset_s[rows]) & (time < self.end_s[rows]), self.kind[rows], GOOD)
        angle = angle + np.where(kind == BIASED, self.bias_rad[rows], 0.0)
        noise = self.streams.normal(2 * angle.shape[1], rows)
        of_angle, of_rate = np.split(noise, 2, axis=1)
        angle = angle + np.where(kind == NOISY, self.noise_rad[rows] * of_angle, 0.0)
        rate = rate + np.where(kind == NOISY, self.noise_rad_s[rows] * of_rate, 0.0)
        last = self.last_rad[rows]
        dead = kind == DEAD
        angle = np.where(dead & ~np.isnan(last), last, angle)
        self.last_rad[rows] = angle
        return angle, np.where(dead, 0.0, rate)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that later readings depend on, by name; not copies."""
        return {
            "kind": self.kind, "onset_s": self.onset_s, "end_s": self.end_s, "bias_rad": self.bias_rad,
            "noise_rad": self.noise_rad, "noise_rad_s": self.noise_rad_s, "last_rad": self.last_rad,
            "key": self.streams.key, "counter": self.streams.counter,
        }  # fmt: skip

    def _draw_faults(self, rows: NDArray[np.int64]) -> None:
        config, n_joints = self.config, self.kind.shape[1]
        u = self.streams.uniform(1 + 4 * n_joints, rows)
        order, which, when, side = np.split(u[:, 1:], 4, axis=1)
        count = config.n_min + np.floor(u[:, :1] * (config.n_max - config.n_min + 1)).astype(np.int64)
        failed = np.argsort(np.argsort(order, axis=1), axis=1) < count
        codes = np.array([ENCODER_CODES[kind] for kind in config.kinds])
        self.kind[rows] = np.where(failed, codes[np.floor(which * codes.size).astype(np.int64)], GOOD)
        self.onset_s[rows] = config.onset_min_s + when * (config.onset_max_s - config.onset_min_s)
        self.end_s[rows] = self.onset_s[rows] + config.duration_s
        self.bias_rad[rows] = np.where(side < 0.5, -config.bias_rad, config.bias_rad)
        self.noise_rad[rows] = config.noise_rad
        self.noise_rad_s[rows] = config.noise_rad_s

    def _list_faults(self, rows: NDArray[np.int64]) -> None:
        self.kind[rows] = GOOD
        for event in self.config.events:
            joint = event.joint - 1
            self.kind[rows, joint] = ENCODER_CODES[event.kind]
            self.onset_s[rows, joint] = event.onset_s
            self.end_s[rows, joint] = event.onset_s + event.duration_s
            self.bias_rad[rows, joint] = event.bias_rad
            self.noise_rad[rows, joint] = event.noise_rad
            self.noise_rad_s[rows, joint] = event.noise_rad_s

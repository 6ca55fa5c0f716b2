"""Kernels of what varies from control step to control step: late commands, pushes, readings that are late and noisy.

A reading of C = 2 J + 3 numbers holds angles (J) [rad], rates (J) [rad/s], the head's x, y [m] and angle [rad]. Random
numbers are those of ``RandomStreams``, each with a place of its own whatever is on: 3 for a step, 3 + C for a reading.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from snake_gym.obstacles.splitmix import GOLDEN, TO_UNIT, mix
from snake_gym.physics.compilation import cached_njit
from snake_gym.physics.faults import SLACK_S

_mix = njit(error_model="numpy", inline="always")(mix)
_LOW = np.uint64(0xFFFF)
_MEAN = 2.0 * 65535.0
_SCALE = 1.0 / math.sqrt(4.0 * (65536.0**2 - 1.0) / 12.0)


@njit(error_model="numpy", inline="always")
def _uniform(key, place):  # type: ignore[no-untyped-def]
    """Return number ``place`` in [0, 1) of the stream ``key``."""
    return float(_mix(key + place * GOLDEN) >> np.uint64(11)) * TO_UNIT


@njit(error_model="numpy", inline="always")
def _nearly_normal(key, place):  # type: ignore[no-untyped-def]
    """Return number ``place`` of mean 0 and variance 1 of a stream: a sum of four uniform ones, at most 3.5 in size."""
    bits, total = _mix(key + place * GOLDEN), np.uint64(0)
    for _ in range(4):
        total += bits & _LOW
        bits >>= np.uint64(16)
    return (float(total) - _MEAN) * _SCALE


@cached_njit()
def read_chains(  # type: ignore[no-untyped-def]
    ids, angle, rate, head_angle, head_xy, past, newest, fresh, delay, jitter, noise, bias, key, counter, out, chance
):
    """Write the readings of the worlds ``ids`` (M,) to ``out`` (M, C), and a number in [0, 1) to ``chance`` (M,).

    Args:
        angle, rate: (W, J) [rad, rad/s] as the servos read them.
        past: (W, D, C) readings of the last D control steps without noise and bias, a ring with the last one at
            ``newest`` (W,); the present ones are added. D = 0: no reading is late.
        fresh: (W,) True where nothing has been read in this episode: it was always so; set to False.
        delay: (W, 2) of joints and of pose, in control steps; between steps a straight line is read.
        jitter: (W, 2) largest further delays in control steps; both together are at most D - 2.
        noise: (W, 4) standard deviations of angles, rates, position, and the head's angle.
        bias: (W, C).
        key: (W,) of the random streams; ``counter`` (W,) their numbers used, which go on by 3 + C.
    """
    n_joints = angle.shape[1]
    n_read, depth = out.shape[1], past.shape[1]
    for m in range(ids.shape[0]):
        w = ids[m]
        for i in range(n_joints):
            out[m, i], out[m, n_joints + i] = angle[w, i], rate[w, i]
        out[m, n_read - 3], out[m, n_read - 2] = head_xy[w, 0], head_xy[w, 1]
        out[m, n_read - 1] = head_angle[w]
        place = counter[w] + np.uint64(1)
        if depth > 0:
            newest[w] = (newest[w] + 1) % depth
            for d in range(depth):
                if fresh[w] or d == newest[w]:
                    past[w, d] = out[m]
            for part in range(2):
                late = delay[w, part] + jitter[w, part] * _uniform(key[w], place + np.uint64(part))
                whole = math.floor(late)
                share = late - whole
                later, earlier = (newest[w] - whole) % depth, (newest[w] - whole - 1) % depth
                for c in range(n_read - 3 if part == 1 else 0, n_read if part == 1 else n_read - 3):
                    out[m, c] = past[w, later, c] + share * (past[w, earlier, c] - past[w, later, c])
        fresh[w] = False
        chance[m] = _uniform(key[w], place + np.uint64(2))
        for c in range(n_read):
            size = noise[w, min(c // n_joints, 2) + (c == n_read - 1)]
            if size > 0.0:
                out[m, c] += size * _nearly_normal(key[w], place + np.uint64(3 + c))
            out[m, c] += bias[w, c]
        counter[w] += np.uint64(3 + n_read)


@cached_njit()
def settle_poses(  # type: ignore[no-untyped-def]
    ids, angle, pose, time_s, chance, loss_chance, outage_s, lost_until_s, held, weights, valid, centre_xy
):
    """Hold the poses of the worlds ``ids`` (M,) that are lost, and work out their centres of mass.

    Args:
        angle: (M, J) [rad] joint angles as read.
        pose: (M, 3) [m, m, rad] of the head as read; becomes the last valid one where it is lost.
        time_s: (W,) [s]. Nothing is lost at time 0.
        chance: (M,) in [0, 1): the pose source loses the robot where it is below ``loss_chance`` (W,).
        outage_s: (W,) [s] how long it has lost it, noted in ``lost_until_s`` (W,).
        held: (W, 3) last valid poses.
        weights: (N,) [m] of the links' directions in the centre of mass (``centre_weights``).
        valid, centre_xy: (M,) and (M, 2) [m] of the results.
    """
    n_joints = angle.shape[1]
    for m in range(ids.shape[0]):
        w = ids[m]
        now = time_s[w] + SLACK_S
        if chance[m] < loss_chance[w] and time_s[w] > 0.0 and now >= lost_until_s[w]:
            lost_until_s[w] = time_s[w] + outage_s[w]
        valid[m] = now >= lost_until_s[w]
        if valid[m]:
            held[w] = pose[m]
        else:
            pose[m] = held[w]
        theta = pose[m, 2]
        x = pose[m, 0] + weights[n_joints] * math.cos(theta)
        y = pose[m, 1] + weights[n_joints] * math.sin(theta)
        for i in range(n_joints - 1, -1, -1):
            theta += angle[m, i]
            x += weights[i] * math.cos(theta)
            y += weights[i] * math.sin(theta)
        centre_xy[m, 0], centre_xy[m, 1] = x, y


@cached_njit()
def draw_step(  # type: ignore[no-untyped-def]
    key, counter, least_delay_s, jitter_s, delay_s, push_chance, push_acc, base_acc, body_acc
):
    """Draw the delays of the next commands ``delay_s`` (W,) [s] and whether and where to robots are pushed.

    ``body_acc`` (W, 2) becomes ``base_acc``, with ``push_acc`` (W,) [m/s^2] added where a world is pushed.
    """
    for w in range(key.shape[0]):
        place = counter[w] + np.uint64(1)
        delay_s[w] = least_delay_s[w] + jitter_s[w] * _uniform(key[w], place)
        body_acc[w] = base_acc[w]
        if _uniform(key[w], place + np.uint64(1)) < push_chance[w]:
            angle = 2.0 * math.pi * _uniform(key[w], place + np.uint64(2))
            body_acc[w, 0] += push_acc[w] * math.cos(angle)
            body_acc[w, 1] += push_acc[w] * math.sin(angle)
        counter[w] += np.uint64(3)


@cached_njit()
def queue_commands(ids, reference, delay_s, sim_dt_s, waiting, due, aim):  # type: ignore[no-untyped-def]
    """Append the commands ``reference`` (W, J) of the worlds ``ids`` to their queues; see ``VaryingDelay``.

    ``aim`` (W, J) becomes the commands that act now.
    """
    depth, n_joints = waiting.shape[1], waiting.shape[2]
    for w in ids:
        last = due[w, depth - 1]
        acting = 0
        for d in range(depth):
            if d < depth - 1:
                due[w, d] = due[w, d + 1]
            else:
                due[w, d] = max(last, round(delay_s[w] / sim_dt_s))
            if due[w, d] == 0:
                acting = d
            for i in range(n_joints):
                waiting[w, d, i] = waiting[w, d + 1, i] if d < depth - 1 else reference[w, i]
        for i in range(n_joints):
            aim[w, i] = waiting[w, acting, i]


@cached_njit()
def pass_time(ids, n_substeps, due):  # type: ignore[no-untyped-def]
    """Let ``n_substeps`` physics steps pass for the queues of the worlds ``ids``."""
    for w in ids:
        for d in range(due.shape[1]):
            due[w, d] = max(due[w, d] - n_substeps, 0)

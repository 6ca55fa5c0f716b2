"""The same robot in MuJoCo, at its best: free root in mid-chain, no Python inside its loop.

The root link carries two slides and a hinge; links follow outwards in both directions, which halves the depth of the
tree. Joint servos are MuJoCo position actuators with the robot's gains and torque limit (MuJoCo has no speed limit to
set). Ground friction is exact: at each link's centre a site with two velocity actuators of zero command, along and
across the link, so that ``implicitfast`` treats it implicitly, as our step does; ``friction=False`` leaves it out.
Pegs, discs as features (n, 6), meet the links' capsules without friction, as soft as MuJoCo's contacts are by default.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snake_gym.robot.spec import RobotSpec


def build_xml(spec: RobotSpec, dt: float, integrator: str, friction: bool = True, pegs: Any = ()) -> str:
    """MJCF of the chain; integrator "implicitfast" or "RK4"."""
    half, radius = spec.links("link_half_length_m"), spec.links("link_radius_m")
    mass, inertia = spec.links("link_mass_kg"), spec.inertia()
    root = spec.n_links // 2

    def inertial(i: int) -> str:
        site = f'<site name="s{i}"/>' if friction else ""
        ends = f'fromto="{-half[i]} 0 0 {half[i]} 0 0" size="{radius[i]}"'
        geom = f'<geom type="capsule" {ends} condim="1" contype="1" conaffinity="0"/>' if len(pegs) else ""
        return f'<inertial pos="0 0 0" mass="{mass[i]}" diaginertia="1 1 {inertia[i]}"/>{site}{geom}'

    def chain(i: int, step: int) -> str:
        if not 0 <= i < spec.n_links:
            return ""
        before = i - step
        # Body frames sit at link centres; the joint to the neighbour nearer to the root is at -step * half.
        offset = step * (half[before] + half[i])
        hinge = f'<joint name="j{min(i, before)}" axis="0 0 {-1 if step > 0 else 1}" pos="{-step * half[i]} 0 0"/>'
        return f'<body pos="{offset} 0 0">{hinge}{inertial(i)}{chain(i + step, step)}</body>'

    kp, kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")
    limit = spec.joints("actuator.torque_limit_nm")
    servos = "".join(
        f'<position joint="j{j}" kp="{kp[j]}" kv="{kd[j]}"'
        + (f' forcerange="{-limit[j]} {limit[j]}"' if np.isfinite(limit[j]) else "") + "/>"
        for j in range(spec.n_joints)
    )  # fmt: skip
    c_t, c_n = spec.links("friction.tangential_ns_m"), spec.links("friction.normal_ns_m")
    drag = "".join(
        f'<velocity site="s{i}" gear="1 0 0 0 0 0" kv="{c_t[i]}"/>'
        f'<velocity site="s{i}" gear="0 1 0 0 0 0" kv="{c_n[i]}"/>'
        for i in range(spec.n_links)
    )
    discs = "".join(
        f'<geom type="capsule" fromto="{x} {y} -1 {x} {y} 1" size="{size}" condim="1" contype="0" conaffinity="1"/>'
        for x, y, *_, size in pegs
    )
    contact = "enable" if len(pegs) else "disable"
    return f"""<mujoco><option timestep="{dt}" integrator="{integrator}" gravity="0 0 0">
      <flag contact="{contact}" constraint="{contact}" gravity="disable" sensor="disable" energy="disable"/></option>
      <compiler boundmass="0" boundinertia="0" autolimits="true" angle="radian"/>
      <worldbody>{discs}<body name="root"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
      <joint type="hinge" axis="0 0 1"/>{inertial(root)}{chain(root + 1, 1)}{chain(root - 1, -1)}</body></worldbody>
      <actuator>{servos}{drag if friction else ""}</actuator></mujoco>"""

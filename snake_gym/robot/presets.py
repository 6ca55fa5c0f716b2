"""Robots that ship with the suite, as data. Each preset names the source of every number."""

from __future__ import annotations

import math

from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec

RESILIENT = RobotSpec(
    name="resilient",
    source="sibilska2022, Tables 1 and 3 (values recomputed, see docs/papers.md): N=10, m=1 kg, l=0.07 m, J=m l^2/3, "
    "c_t=1, c_n=10 N s/m; K_p=1 1/s^2, K_d=2 1/s; u acts as a joint acceleration",
    n_links=10,
    link_half_length_m=0.07,
    link_mass_kg=1.0,
    friction=FrictionSpec(tangential_ns_m=1.0, normal_ns_m=10.0),
    actuator=ActuatorSpec(kind="acceleration", kp=1.0, kd=2.0),
    joint_limit_rad=math.radians(90.0),
    control_dt_s=0.05,
    sim_dt_s=0.05,
    integrator="rk4",
)

RESILIENT_SERVO = RobotSpec(
    name="resilient_servo",
    source="the body of sibilska2022 with position servos limited to 2 rad/s; our choice, sized after 85 kg cm "
    "(8 N m) bus servos: full torque at 8 degrees of error, position loop at 6 rad/s",
    n_links=10,
    link_half_length_m=0.07,
    link_mass_kg=1.0,
    friction=FrictionSpec(tangential_ns_m=1.0, normal_ns_m=10.0),
    actuator=ActuatorSpec(kind="position", kp=60.0, kd=10.0, torque_limit_nm=8.0, speed_limit_rad_s=2.0),
    joint_limit_rad=math.radians(90.0),
    free_joint_damping_nms_rad=0.05,
    control_dt_s=0.2,
    sim_dt_s=0.01,
    integrator="implicit",
)

PRESETS: dict[str, RobotSpec] = {spec.name: spec for spec in (RESILIENT, RESILIENT_SERVO)}

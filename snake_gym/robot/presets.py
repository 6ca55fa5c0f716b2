"""Robots that ship with the suite, as data. Each preset names the source of every number."""

from __future__ import annotations

import math
from dataclasses import replace

from snake_gym.robot.spec import ActuatorSpec, ContactSpec, FrictionSpec, MuscleSpec, RobotSpec

RESILIENT = RobotSpec(
    name="resilient",
    source="sibilska2022, Tables 1 and 3 (values recomputed, see docs/papers.md): N=10, m=1 kg, l=0.07 m, J=m l^2/3, "
    "c_t=1, c_n=10 N s/m; K_p=1 1/s^2, K_d=2 1/s; u acts as a joint acceleration",
    n_links=10,
    link_half_length_m=0.07,
    link_mass_kg=1.0,
    friction=FrictionSpec(tangential_ns_m=1.0, normal_ns_m=10.0),
    links_touch=False,
    actuator=ActuatorSpec(kind="acceleration", kp=1.0, kd=2.0),
    joint_limit_rad=math.radians(90.0),
    control_dt_s=0.05,
    sim_dt_s=0.01,
)

RESILIENT_SERVO = replace(
    RESILIENT,
    name="resilient_servo",
    source="the body of sibilska2022 with position servos limited to 2 rad/s; our choice, sized after 85 kg cm "
    "(8 N m) bus servos: full torque at 8 degrees of error, position loop at 6 rad/s",
    actuator=ActuatorSpec(kind="position", kp=60.0, kd=10.0, torque_limit_nm=8.0, speed_limit_rad_s=2.0),
    free_joint_damping_nms_rad=0.05,
    links_touch=True,
    control_dt_s=0.2,
    sim_dt_s=0.01,
)

ROBO_CONDA = RobotSpec(
    name="robo_conda",
    source="irani2015: 14 modules on 1.75 m, m=0.286 kg, I_zz=2.383e-4 kg m^2, Table 1 (c_joint=0.045, mu_lat=1.5, "
    "mu_long=0.12, c_lat=3.75, c_long=0.14 for each wheel set), each wheel axis with a sign function of its own (eq. "
    "4-5), stops at 38 degrees, servos of 1.19 N m and 140 deg/s. Our choice: the head, which has no wheels, slides "
    "with the rolling coefficients in all directions (the paper's model has no coefficient for it); servo loop "
    "stiff enough for full torque at 3.4 degrees; a servo pulls 2.5 A at full torque; width 0.1 m",
    n_links=14,
    link_half_length_m=1.75 / 14 / 2,
    link_mass_kg=0.286,
    link_inertia_kgm2=2.383e-4,
    link_radius_m=0.05,
    links_touch=False,
    friction=FrictionSpec(
        tangential_ns_m=0.14,
        normal_ns_m=(3.75,) * 13 + (0.14,),
        tangential_coulomb=0.12,
        normal_coulomb=(1.5,) * 13 + (0.12,),
        coulomb_axes="independent",
    ),
    actuator=ActuatorSpec(
        kind="position",
        kp=20.0,
        kd=1.0,
        torque_limit_nm=1.19,
        speed_limit_rad_s=math.radians(140.0),
        supply_voltage_v=6.0,
        torque_constant_nm_a=1.19 / 2.5,
    ),
    joint_limit_rad=math.radians(38.0),
    joint_stop_rad=math.radians(38.0),
    free_joint_damping_nms_rad=0.045,
    control_dt_s=0.1,
    sim_dt_s=0.001,
)

MUSCLE = RobotSpec(
    name="muscle",
    source="haghshenas2022, section 3: N=6, m=0.09 kg, h1=0.1 m, h2=0.05 m, 2w=0.05 m, mu_2=0.5, mu_1=0.05 (Coulomb, "
    "eq. 34-35: along the slip), muscles of 100 mm at rest. Our choice: links as uniform plates h1 x 2w (I_zz is not "
    "given); muscles of 10 mm with a braid angle of 38 degrees, so that they contract to 73 mm (Table 2 needs 75.2) "
    "and co-contraction stiffens the joint (below 35.3 degrees it would buckle at this geometry), up to 3 bar, 0.5 bar "
    "of co-contraction, valves with 50 ms; torque gains (the paper's 1.25 and 0.1 belong to its linearised "
    "coordinates); stops at 44 degrees, where a muscle is at its shortest",
    n_links=6,
    link_half_length_m=0.05,
    link_mass_kg=0.09,
    link_inertia_kgm2=0.09 * (0.1**2 + 0.05**2) / 12,
    link_radius_m=0.025,
    links_touch=False,
    friction=FrictionSpec(0.0, 0.0, tangential_coulomb=0.05, normal_coulomb=0.5, coulomb_axes="coupled"),
    actuator=ActuatorSpec(
        kind="muscle",
        kp=4.0,
        kd=0.3,
        muscle=MuscleSpec(
            attachment_m=0.05,
            half_width_m=0.025,
            rest_length_m=0.1,
            radius_m=0.005,
            braid_angle_rad=math.radians(38.0),
            max_pressure_pa=3.0e5,
            base_pressure_pa=5.0e4,
            pressure_lag_s=0.05,
            damping_nms_rad=0.005,
        ),
    ),
    joint_limit_rad=math.radians(42.0),
    joint_stop_rad=math.radians(44.0),
    free_joint_damping_nms_rad=0.005,
    control_dt_s=0.05,
    sim_dt_s=0.0005,
)

_MODULE_M, _MODULE_KG, _MODULE_KGM2 = 0.160, 1.3310425, 1.0637e-2
_HEAD_KG, _HEAD_KGM2 = 0.95365, 8.604e-3
_WHEELS_KG = 2 * (0.0528 + 0.0385)
"""Two wheels and their brackets."""

SNAKESYS = RobotSpec(
    name="snakesys",
    source="liu2024, Table 2 and its published model of Snake Robot III: 28 joints (yaw and pitch in turn) of +-90 "
    "degrees between a head of 0.954 kg and 28 modules of 1.331 kg, each 0.160 m long and 55 mm in radius; "
    "I_zz=1.0637e-2 kg m^2 about the module's centre of mass (as published; a solid cylinder of that size would have "
    "0.39e-2), 8.604e-3 about the head's; joint damping 0.1 N m s/rad, friction 0.1 N m. Planar chain of the 14 yaw "
    "joints: pitch joints are stiff, so links 1-14 are two modules each and the head is one (the parallel-axis theorem "
    "puts each module half its length from the link's centre, which is 7 mm too far). A pair of wheels of 0.183 kg at "
    "the head's tip and at the front of each link; that the link's centre of mass moves 10 mm by it is neglected. "
    "Servo: Feetech SM8524BL, 85 kg cm (8.34 N m) and 0.154 s per 60 degrees (6.80 rad/s) by the published model; loop "
    "gains and current are our assumption. Friction of the wheels: the paper has no coefficients; 0.05 rolling and 0.8 "
    "across are ours",
    n_links=15,
    link_half_length_m=(_MODULE_M,) * 14 + (_MODULE_M / 2,),
    link_mass_kg=(2 * _MODULE_KG + _WHEELS_KG,) * 14 + (_HEAD_KG + _WHEELS_KG,),
    link_inertia_kgm2=(2 * (_MODULE_KGM2 + _MODULE_KG * (_MODULE_M / 2) ** 2) + _WHEELS_KG * _MODULE_M**2,) * 14
    + (_HEAD_KGM2 + _WHEELS_KG * (_MODULE_M / 2) ** 2,),
    link_radius_m=0.055,
    links_touch=False,
    friction=FrictionSpec(0.0, 0.0, tangential_coulomb=0.05, normal_coulomb=0.8, coulomb_axes="independent"),
    actuator=ActuatorSpec(
        kind="position",
        kp=120.0,
        kd=12.0,
        torque_limit_nm=85 * 9.80665e-2,
        speed_limit_rad_s=6.80,
        supply_voltage_v=24.0,
        torque_constant_nm_a=3.0,
    ),
    joint_limit_rad=math.radians(90.0),
    joint_stop_rad=math.radians(90.0),
    free_joint_damping_nms_rad=0.1,
    joint_friction_nm=0.1,
    control_dt_s=0.1,
    sim_dt_s=0.001,
)

PEGBOARD = replace(
    RESILIENT_SERVO,
    name="pegboard",
    source="wang: viscous ground friction with the rotational part tau = -c_n I theta_dot (eq. 7-8), joints driven by "
    "torque, contacts by complementarity with viscous friction along the surface (eq. 11-22). It has no numbers: body, "
    "c_t and c_n of sibilska2022 (with its m = 1 kg, c_n I is what eq. 7 integrated over the link gives), servo gains "
    "and limits of resilient_servo, restitution 0.2 and 0.5 N s/m at the surface are ours",
    friction=replace(RESILIENT.friction, rotational_nms_rad=10.0 * 1.0 * 0.07**2 / 3.0),
    contact=ContactSpec(model="rigid", restitution=0.2, friction_ns_m=0.5),
    actuator=ActuatorSpec(kind="torque", kp=60.0, kd=10.0, torque_limit_nm=8.0),
    links_touch=False,
    control_dt_s=0.1,
)

_ALL = (RESILIENT, RESILIENT_SERVO, ROBO_CONDA, MUSCLE, SNAKESYS, PEGBOARD)
PRESETS: dict[str, RobotSpec] = {spec.name: spec for spec in _ALL}

"""Parameters and laws of the physics for a robot's specification."""

from __future__ import annotations

import math

import numpy as np

from snake_gym.physics.actuators import ACTUATOR_CODES
from snake_gym.physics.friction import AXES_CODES
from snake_gym.physics.integrate import Laws
from snake_gym.physics.muscles import ATMOSPHERE_PA, MuscleParams
from snake_gym.physics.state import ChainParams, ContactParams
from snake_gym.robot.spec import FloatArray, RobotSpec


def chain_params(spec: RobotSpec, n_worlds: int) -> ChainParams:
    """Return the parameters of ``n_worlds`` identical nominal robots."""

    def rows(values: FloatArray) -> FloatArray:
        return np.array(np.broadcast_to(values, (n_worlds, values.size)), order="C")  # also one row a writable copy

    return ChainParams(
        mass=rows(spec.links("link_mass_kg")),
        inertia=rows(spec.inertia()),
        half_length=rows(spec.links("link_half_length_m")),
        ahead=np.zeros((n_worlds, spec.n_links)),
        c_t=rows(spec.links("friction.tangential_ns_m")),
        c_n=rows(spec.links("friction.normal_ns_m")),
        c_r=rows(spec.links("friction.rotational_nms_rad")),
        coulomb_t=rows(spec.coulomb_force("tangential")),
        coulomb_n=rows(spec.coulomb_force("normal")),
        coulomb_r=rows(spec.links("friction.rotational_coulomb_nm")),
        backward=rows(spec.links("friction.backward")),
        radius=rows(spec.links("link_radius_m")),
        body_acc=rows(spec.body_acceleration),
        kp=rows(spec.joints("actuator.kp")),
        kd=rows(spec.joints("actuator.kd")),
        torque_limit=rows(spec.joints("actuator.torque_limit_nm")),
        speed_limit=rows(spec.joints("actuator.speed_limit_rad_s")),
        free_damping=rows(spec.joints("free_joint_damping_nms_rad")),
        stop=rows(spec.joints("joint_stop_rad")),
        dead_band=rows(spec.joints("actuator.dead_band_rad")),
        play=rows(0.5 * spec.joints("actuator.backlash_rad")),
        no_load_speed=rows(spec.joints("actuator.no_load_speed_rad_s")),
        joint_friction=rows(spec.joints("joint_friction_nm")),
        sag_per_nm=rows(spec.supply_sag_per_nm()),
    )


def needed_laws(spec: RobotSpec, obstacles: bool) -> Laws:
    """Return the laws that a robot's steps have to apply."""
    contact, muscle = spec.contact, spec.actuator.muscle
    return Laws(
        kind=ACTUATOR_CODES[spec.actuator.kind],
        limits=bool(np.isfinite(spec.joints("actuator.torque_limit_nm")).any()),
        stops=bool(np.isfinite(spec.joints("joint_stop_rad")).any()),
        joint_friction=bool(spec.joints("joint_friction_nm").any()),
        one_way=spec.has_one_way_friction,
        coulomb=spec.has_coulomb_friction,
        axes=AXES_CODES[spec.friction.coulomb_axes],
        imperfect=bool(spec.actuator.imperfections),
        muscle=MuscleParams(
            muscle.attachment_m, muscle.half_width_m, muscle.rest_length_m, math.pi * muscle.radius_m**2,
            *muscle.force_coefficients, muscle.max_pressure_pa, muscle.base_pressure_pa, muscle.pressure_lag_s,
            muscle.damping_nms_rad, math.log1p(muscle.max_pressure_pa / ATMOSPHERE_PA), direct=False,
        ),
        obstacles=obstacles,
        contact=ContactParams(
            contact.model == "rigid", contact.stiffness_n_m, spec.contact_damping_ns_m, contact.restitution,
            contact.friction_ns_m, contact.friction_coulomb,
        ),
        links_touch=spec.links_touch,
        late=False,
        servo_faults=False,
        patches=False,
    )  # fmt: skip

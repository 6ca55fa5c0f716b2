"""Feetech SMS and STS servos: registers, defaults and models.

Addresses 0-39 are EEPROM, 40-55 the control registers, 56-72 what the servo measures, 80-86 factory settings. Sources:

- Feetech's memory tables of the STS and SMS series; the defaults are those of an STS3215. ``torque_enable``: 0 off, 1
  on, 2 brake, 128 recentre; no other code is in any table. Overload: 34 torque left over, 35 time, 36 threshold.
- LeRobot (``motors/feetech/tables.py``): register 71, Goal_Position_2, is read-only; 80-86 are not, and
  ``configure_motors`` writes 85 whenever it connects. rustypot (``servo/feetech/sts3215.rs``) has 85 writable as well;
  Feetech's own table has 80-86 read-only. What of them outlasts power-off is not published: here nothing does.
- Feetech's FTServo_Arduino (``INST.h``, ``SMS_STS.cpp``): instructions 0x06 recovery, 0x0A reset, 0x0B calibrate;
  ``CalibrationOfs`` writes 128 to 40. Its SCSLib for STM32 and rustypot (``dynamixel_protocol/v1.rs``): 0x08 reboot.
- python-st3215 (``DefineMiddle``): 128 makes the present position 2048.

Properties that are easily overlooked:

- Writing ``goal_position`` switches the torque on by itself. A goal sent late undoes a torque-off.
- Switching the torque on by ``torque_enable`` makes the servo hold its position, which becomes its goal.
- ``torque_enable`` = 128 stores a new offset: the present position becomes 2048.
- ``goal_speed`` = 0 is the greatest speed (phase bit 3), not standstill; ``acceleration`` = 0 means no ramp.
- Both angle limits 0: positions are not limited, and count over several turns.
- present position = actual position - ``homing_offset``, modulo a turn.
- Drivers disagree about baud codes 5-7, so the table has none of them: a servo set to one may not be found again.
- The place of the sign bit depends on the register: 15 for positions and speeds, 10 for loads, 11 for the offset.
"""

from __future__ import annotations

import math

from snake_gym.hardware.bus.family import Encoding, Register, ServoFamily, ServoModel, register_servo_family

_BYTE = Encoding(1)
_WORD = Encoding(2)
_STEP = 2.0 * math.pi / 4096
_ANGLE = Encoding(2, 15, _STEP)
_TENTH_VOLT = Encoding(1, None, 0.1)
_PERMILLE = Encoding(2, None, 1e-3)
_PERCENT = Encoding(1, None, 1e-2)
_TEN_MS = Encoding(1, None, 0.01)

_REGISTERS = (
    Register("firmware_major", 0, _BYTE, "r", default=3),
    Register("firmware_minor", 1, _BYTE, "r", default=10),
    Register("byte_order", 2, _BYTE, "r"),
    Register("model", 3, _WORD, "r", default=777),
    Register("id", 5, _BYTE, "rw", default=1, high=253),
    Register("baud_rate", 6, _BYTE, "rw", high=4),
    Register("return_delay", 7, Encoding(1, None, 2e-6), "rw", "s", high=254),
    Register("response_level", 8, _BYTE, "rw", default=1, high=1),
    Register("min_angle_limit", 9, _ANGLE, "rw", "rad", low=0, high=4095),
    Register("max_angle_limit", 11, _ANGLE, "rw", "rad", default=4095, low=0, high=4095),
    Register("max_temperature", 13, _BYTE, "rw", "degC", default=70, high=100),
    Register("max_voltage", 14, _TENTH_VOLT, "rw", "V", default=140, high=254),
    Register("min_voltage", 15, _TENTH_VOLT, "rw", "V", default=40, high=254),
    Register("max_torque", 16, _PERMILLE, "rw", "of stall", default=1000, high=1000),
    Register("phase", 18, _BYTE, "rw", default=12),
    Register("unload_condition", 19, _BYTE, "rw", default=0x2C),
    Register("alarm_condition", 20, _BYTE, "rw", default=0x2F),
    Register("position_p", 21, _BYTE, "rw", default=32),
    Register("position_d", 22, _BYTE, "rw", default=32),
    Register("position_i", 23, _BYTE, "rw"),
    Register("min_start_torque", 24, Encoding(1, None, 1e-3), "rw", "of stall", default=16),
    Register("integral_limit", 25, _BYTE, "rw"),
    Register("cw_dead_band", 26, Encoding(1, None, _STEP), "rw", "rad", default=1, high=32),
    Register("ccw_dead_band", 27, Encoding(1, None, _STEP), "rw", "rad", default=1, high=32),
    Register("protection_current", 28, Encoding(2, None, 6.5e-3), "rw", "A", default=500, high=2047),
    Register("angle_resolution", 30, _BYTE, "rw", default=1, low=1, high=128),
    Register("homing_offset", 31, Encoding(2, 11, _STEP), "rw", "rad"),
    Register("mode", 33, _BYTE, "rw", high=3),
    Register("protective_torque", 34, _PERCENT, "rw", "of stall", default=20, high=100),
    Register("protection_time", 35, _TEN_MS, "rw", "s", default=200, high=254),
    Register("overload_torque", 36, _PERCENT, "rw", "of stall", default=80, high=100),
    Register("speed_p", 37, _BYTE, "rw", default=10),
    Register("overcurrent_time", 38, _TEN_MS, "rw", "s", default=200, high=254),
    Register("speed_i", 39, _BYTE, "rw", default=10),
    Register("torque_enable", 40, _BYTE, "rw", high=128),
    Register("acceleration", 41, Encoding(1, None, 100.0 * _STEP), "rw", "rad/s^2", high=254),
    Register("goal_position", 42, _ANGLE, "rw", "rad"),
    Register("goal_time", 44, Encoding(2, 10, 1e-3), "rw", "of stall"),
    Register("goal_speed", 46, _ANGLE, "rw", "rad/s"),
    Register("torque_limit", 48, _PERMILLE, "rw", "of stall", default=1000, high=1000),
    Register("lock", 55, _BYTE, "rw", default=1, high=1),
    Register("present_position", 56, _ANGLE, "r", "rad"),
    Register("present_speed", 58, _ANGLE, "r", "rad/s"),
    Register("present_load", 60, Encoding(2, 10, 1e-3), "r", "of stall"),
    Register("present_voltage", 62, _TENTH_VOLT, "r", "V"),
    Register("present_temperature", 63, _BYTE, "r", "degC"),
    Register("registered_write", 64, _BYTE, "r"),
    Register("status", 65, _BYTE, "r"),
    Register("moving", 66, _BYTE, "r"),
    Register("target_position", 67, _ANGLE, "r", "rad"),
    Register("present_current", 69, Encoding(2, 15, 6.5e-3), "r", "A"),
    Register("goal_position_2", 71, _ANGLE, "r", "rad"),
    Register("speed_threshold", 80, _BYTE, "rw", default=1),
    Register("control_period", 81, Encoding(1, None, 1e-3), "rw", "s", default=1),
    Register("speed_unit", 82, _BYTE, "rw", default=1),
    Register("time_unit", 83, _BYTE, "rw"),
    Register("max_speed", 84, Encoding(1, None, 50.0 * _STEP), "rw", "rad/s", default=67),
    Register("max_acceleration", 85, Encoding(1, None, 100.0 * _STEP), "rw", "rad/s^2", default=254),
    Register("acceleration_factor", 86, _BYTE, "rw", default=1),
)

_KG_CM = 0.0980665
_SIXTH_TURN = math.pi / 3.0
_BLUE = {"baud_rate": 4, "min_voltage": 90, "max_speed": 89, "model": 11272}

_MODELS = (
    # data sheet SM-8524-C001: 85 kg cm, 0.154 s / 60 deg, 5.6 A at 24 V, RS-485; its number is in no public table
    ServoModel("SM8524BL", None, 85 * _KG_CM, 24.0, _SIXTH_TURN / 0.154, 5.6, {**_BLUE, "max_voltage": 252}),
    # the 12 V sister; number as in LeRobot's table, speed and current taken from the 24 V one
    ServoModel("SM8512BL", 11272, 85 * _KG_CM, 12.0, _SIXTH_TURN / 0.154, 11.2, {**_BLUE, "max_voltage": 140}),
    # 12 V version (C018): 30 kg cm, 0.222 s / 60 deg, 2.7 A
    ServoModel("STS3215", 777, 30 * _KG_CM, 12.0, _SIXTH_TURN / 0.222, 2.7),
)

FEETECH = register_servo_family(
    ServoFamily("feetech", _REGISTERS, _MODELS, baud_rates=(1_000_000, 500_000, 250_000, 128_000, 115_200))
)

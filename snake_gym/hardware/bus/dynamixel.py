"""Dynamixel X servos with protocol 2: registers, defaults and models.

Source: the control tables of XL330-M288, XL330-M077, XL430-W250, XM430-W350 and XM430-W210 in Robotis's e-manual
(repository ROBOTIS-GIT/emanual); the models' files in dynamixel-sdk 4.1.0 agree. Register names are those of
``feetech``; the e-manual's are: PWM Limit (``max_torque``), Goal PWM (``torque_limit``), Velocity Limit
(``max_speed``), Shutdown (``unload_condition``), Profile Acceleration and Velocity (``acceleration``, ``goal_speed``).

Properties that are easily overlooked:

- Registers below 64 are written only while the torque is off. There is no lock.
- Switching the torque on makes the servo hold its position; a goal does not switch it on.
- A fault named in ``unload_condition`` switches the torque off until the servo is rebooted, or its supply was off.
- ``bus_watchdog``, in 20 ms: a servo that hears no packet for so long, its torque on, *stops*: its register is -1 from
  then on, and goals are refused until it is written 0. In the modes of position and speed it then brakes and stays
  stiff (rt-net/crane_x7_ros, pull request 11; DynamixelSDK, issue 584); it is no torque-off. Firmware 38 or newer; the
  XL330's up to 51 stops nothing in mode 0 (Robotis's forum, topic 4814).
- ``drive_mode`` bit 2 makes times of the speeds.
- present position = actual position + ``homing_offset``: the other sign than Feetech's.
- XL330 and XM430 measure a current, not a load: read as a share of the stall current at the nominal voltage.
"""

from __future__ import annotations

import math

from snake_gym.hardware.bus.family import Encoding, Register, ServoFamily, ServoModel, register_servo_family

_BYTE = Encoding(1)
_WORD = Encoding(2)
_LONG = Encoding(4)
_STEP = 2.0 * math.pi / 4096
_RPM = 2.0 * math.pi / 60.0
_PLACE = Encoding(4, scale=_STEP, signed=True)
_LIMIT = Encoding(4, scale=_STEP)
_RATE = Encoding(4, scale=0.229 * _RPM, signed=True)
_SPEED = Encoding(4, scale=0.229 * _RPM)
_TENTH_VOLT = Encoding(2, scale=0.1)
_PWM = Encoding(2, scale=1.0 / 885)
_GAIN = 16_383


def _registers(load: float, *current: Register) -> tuple[Register, ...]:
    """Return the table of servos with ``load`` [of stall] for each count at 126, and with registers of their own."""
    table = (
        Register("model", 0, _WORD, "r"),
        Register("model_information", 2, _LONG, "r"),
        Register("firmware_major", 6, _BYTE, "r", default=45),
        Register("id", 7, _BYTE, default=1, high=252),
        Register("baud_rate", 8, _BYTE, default=1, high=6),
        Register("return_delay", 9, Encoding(1, None, 2e-6), unit="s", default=250, high=254),
        Register("drive_mode", 10, _BYTE, high=13),
        Register("mode", 11, _BYTE, default=3, high=16),
        Register("shadow_id", 12, _BYTE, default=255),
        Register("protocol_type", 13, _BYTE, default=2, high=22),
        Register("homing_offset", 20, _PLACE, unit="rad", low=-1_044_479, high=1_044_479),
        Register("moving_threshold", 24, _SPEED, unit="rad/s", default=10, high=1023),
        Register("max_temperature", 31, _BYTE, unit="degC", high=100),
        Register("max_voltage", 32, _TENTH_VOLT, unit="V", high=160),
        Register("min_voltage", 34, _TENTH_VOLT, unit="V", high=160),
        Register("max_torque", 36, _PWM, unit="of stall", default=885, high=885),
        Register("max_speed", 44, _SPEED, unit="rad/s", high=2047),
        Register("max_angle_limit", 48, _LIMIT, unit="rad", default=4095, high=4095),
        Register("min_angle_limit", 52, _LIMIT, unit="rad", high=4095),
        Register("startup_configuration", 60, _BYTE),
        Register("unload_condition", 63, _BYTE, default=52),
        Register("torque_enable", 64, _BYTE, high=1),
        Register("led", 65, _BYTE, high=1),
        Register("response_level", 68, _BYTE, default=2, high=2),
        Register("registered_write", 69, _BYTE, "r"),
        Register("hardware_error", 70, _BYTE, "r"),
        Register("speed_i", 76, _WORD, high=_GAIN),
        Register("speed_p", 78, _WORD, high=_GAIN),
        Register("position_d", 80, _WORD, high=_GAIN),
        Register("position_i", 82, _WORD, high=_GAIN),
        Register("position_p", 84, _WORD, high=_GAIN),
        Register("feedforward_2", 88, _WORD, high=_GAIN),
        Register("feedforward_1", 90, _WORD, high=_GAIN),
        Register("bus_watchdog", 98, Encoding(1, scale=0.02, signed=True), unit="s", low=0),
        Register("torque_limit", 100, Encoding(2, scale=1.0 / 885, signed=True), unit="of stall", default=885, low=0,
                 high=885),
        Register("goal_velocity", 104, _RATE, unit="rad/s"),
        Register("acceleration", 108, Encoding(4, scale=214.577 * _RPM / 60.0), unit="rad/s^2", high=32_767),
        Register("goal_speed", 112, _SPEED, unit="rad/s", high=32_767),
        Register("goal_position", 116, _PLACE, unit="rad"),
        Register("realtime_tick", 120, Encoding(2, scale=1e-3), "r", "s"),
        Register("moving", 122, _BYTE, "r"),
        Register("moving_status", 123, _BYTE, "r"),
        Register("present_pwm", 124, Encoding(2, scale=1.0 / 885, signed=True), "r", "of full"),
        Register("present_load", 126, Encoding(2, scale=load, signed=True), "r", "of stall"),
        Register("present_speed", 128, _RATE, "r", "rad/s"),
        Register("present_position", 132, _PLACE, "r", "rad"),
        Register("target_speed", 136, _RATE, "r", "rad/s"),
        Register("target_position", 140, _PLACE, "r", "rad"),
        Register("present_voltage", 144, _TENTH_VOLT, "r", "V"),
        Register("present_temperature", 146, _BYTE, "r", "degC"),
        Register("backup_ready", 147, _BYTE, "r"),
    )  # fmt: skip
    return tuple(sorted(table + current, key=lambda one: one.address))


def _family(name: str, registers: tuple[Register, ...], *models: ServoModel) -> ServoFamily:
    rates = (9_600, 57_600, 115_200, 1_000_000, 2_000_000, 3_000_000, 4_000_000)
    family = ServoFamily(
        name, registers, models, rates, eeprom_end=64, recentre_code=None, position_mode=3, protocol=2,
        faults={"voltage": 0, "heat": 2, "encoder": 3, "current": 4, "overload": 5},  # 4: an electrical shock
    )  # fmt: skip
    return register_servo_family(family)


def _defaults(number: int, celsius: int, volts: tuple[int, int], speed: int, p: int, **more: int) -> dict[str, int]:
    low, high = volts
    common = {"model": number, "max_temperature": celsius, "min_voltage": low, "max_voltage": high, "max_speed": speed}
    return {**common, "position_p": p, **more}


XL330_CURRENT = 1e-3
XM430_CURRENT = 2.69e-3
"""Currents of one count [A]."""
_SMALL = {"unload_condition": 53, "current_limit": 1750}

XL330 = _family(
    "xl330",
    _registers(
        XL330_CURRENT / 1.47,
        Register("current_limit", 38, Encoding(2, scale=XL330_CURRENT), unit="A", high=1750),
        Register("pwm_slope", 62, _BYTE, default=140, low=1),
        Register("goal_current", 102, Encoding(2, scale=XL330_CURRENT, signed=True), unit="A"),
    ),
    ServoModel("XL330-M288", 1200, 0.52, 5.0, 103 * _RPM, 1.47,
               _defaults(1200, 70, (35, 70), 445, 400, speed_i=1600, speed_p=180, **_SMALL)),
    ServoModel("XL330-M077", 1190, 0.215, 5.0, 383 * _RPM, 1.47,
               _defaults(1190, 70, (35, 70), 1620, 400, position_i=400, speed_i=400, speed_p=40, **_SMALL)),
)  # fmt: skip
XL430 = _family(
    "xl430",
    _registers(1e-3),
    ServoModel("XL430-W250", 1060, 1.5, 12.0, 61 * _RPM, 1.4,
               _defaults(1060, 72, (60, 140), 265, 640, position_d=4000, speed_i=1000, speed_p=100)),
)  # fmt: skip
_LARGE = {"current_limit": 1193, "speed_i": 1920, "speed_p": 100}
XM430 = _family(
    "xm430",
    _registers(
        XM430_CURRENT / 2.3,
        Register("current_limit", 38, Encoding(2, scale=XM430_CURRENT), unit="A", high=1193),
        Register("goal_current", 102, Encoding(2, scale=XM430_CURRENT, signed=True), unit="A"),
    ),
    ServoModel("XM430-W350", 1020, 4.1, 12.0, 46 * _RPM, 2.3, _defaults(1020, 80, (95, 160), 200, 800, **_LARGE)),
    ServoModel("XM430-W210", 1030, 3.0, 12.0, 77 * _RPM, 2.3, _defaults(1030, 80, (95, 160), 330, 800, **_LARGE)),
)

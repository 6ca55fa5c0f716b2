"""The commands of ``python -m snake_gym.hardware``, one module each; a module is loaded when its command is asked for.

Each has ``add_options(parser)`` and ``run(options) -> exit code``; what the user has to correct is a ConfigError.
"""

PROGRAM = "python -m snake_gym.hardware"

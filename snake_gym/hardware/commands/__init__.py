"""Commands of ``python -m snake_gym.hardware``, one module each, which is loaded when its command is asked for.

Each has ``add_options(parser)`` and ``run(options) -> exit code``; errors that the user can correct are ConfigErrors.
"""

PROGRAM = "python -m snake_gym.hardware"

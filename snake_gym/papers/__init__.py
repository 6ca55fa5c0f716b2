"""One module per source: reruns its published experiment and tables it against the paper.

``python -m snake_gym.papers sibilska2022`` is the command line entry.
"""

"""Package layout beyond ``pyproject.toml``: once installed, ``agents`` and ``configs`` lie below ``snake_gym``."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["snake_gym*"]), "snake_gym.agents", "snake_gym.configs"],
    package_dir={"snake_gym.agents": "agents", "snake_gym.configs": "configs"},
    include_package_data=False,  # MANIFEST.in is of the sdist
    package_data={
        "snake_gym": ["py.typed"],
        "snake_gym.agents": ["pretrained/**/*"],
        "snake_gym.configs": ["**/*.yaml", "**/*.json", "**/*.txt"],
        "snake_gym.render": ["assets/*"],
    },
)

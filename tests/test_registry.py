"""Making the environments by name."""

from __future__ import annotations

import pytest

import snake_gym


def test_names_of_the_package_load_at_first_use() -> None:
    assert snake_gym.load_robot("resilient").n_links == 10
    for name in snake_gym.__all__:
        assert getattr(snake_gym, name) is not None
        assert name in dir(snake_gym)
    with pytest.raises(AttributeError, match="no attribute 'load_robt'"):
        _ = snake_gym.load_robt

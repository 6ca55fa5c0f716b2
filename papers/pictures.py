"""Figures of a study as PNG: house style, no display, pyplot's state left alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from papers.study import Figure
from snake_gym.config import ConfigError, require, write_atomic
from snake_gym.config.errors import show
from snake_gym.render.palette import GRID, INK

_DPI = 144
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "font.size": 10.0,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


def require_folder(folder: str, option: str) -> Path:
    """``folder`` as a path that pictures can go to. Raises ConfigError if it is a file or matplotlib is missing."""
    require("a plot", "matplotlib")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option} is {show(folder)}, a file; expected a folder")
    return path


def draw_png(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with rc_context(_STYLE):
        canvas = Canvas(figsize=figure.size_inch, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas)
        buffer = io.BytesIO()
        canvas.savefig(buffer, dpi=_DPI, format="png")
    return buffer.getvalue()


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Draw every figure into ``folder`` as NAME.png; returns the files."""
    paths = [folder / f"{figure.name}.png" for figure in figures]
    for figure, path in zip(figures, paths, strict=True):
        write_atomic(path, draw_png(figure))
    return paths

"""What TensorBoard shows of a run besides its curves: settings, references, pictures, and a layout of charts.

Nothing here draws random numbers or changes the model: a run learns the same with and without it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from snake_gym.config import to_dict
from snake_gym.config.yaml_text import format_yaml
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.recording import Recorder

from .config import TrainConfig
from .metrics import Columns, joint_failed
from .references import References, means_of, play_references, scores_by_joint

PICTURED = 5
"""Number of parts of a run at whose ends pictures are drawn."""
_HYPER = (
    "seed", "n_envs", "total_steps", "stagger", "algorithm", "normalise", "curriculum", "env_id", "env.difficulty",
    "env.action.kind", "env.action.scale_rad", "env.action.pace_range", "env.faults.n_min", "env.faults.n_max",
    "env.faults.kinds", "env.reward",
)  # fmt: skip
"""Settings, and groups of them, that the tab HParams compares."""
_CHARTS = {
    "Learning": {
        "return": ["rollout/return", "eval/return"],
        "progress [m]": ["progress/all", "eval/progress/all"],
        "success": ["rollout/success_rate", "eval/success_rate"],
        "regret to the best classical controller": ["eval/regret"],
    },
    "Faults (evaluation)": {
        "progress by failed joints [m]": [r"eval/progress/\d+_failed"],
        "success by failed joints": [r"eval/success/\d+_failed"],
        "progress by kind of fault [m]": ["eval/progress/(?!all|[0-9])[a-z_]+"],
        "success by kind of fault": ["eval/success/(?![0-9])[a-z_]+"],
    },
    "Actions (evaluation)": {
        "size": ["eval/action_rms", "eval/action_residual_rms_rad"],
        "shares": ["eval/action_.*share"],
    },
}
"""Charts of the tab Custom Scalars."""
_METRICS = ("eval/return", "eval/progress/all", "eval/success_rate", "eval/tracking", "eval/regret")


class ReferencesStopped(Exception):
    """Exception raised while references are played when the run is asked to stop."""


class Dashboard:
    """Pages of a run in TensorBoard. ``is_ours`` is False for an env of another package, of which less is known."""

    def __init__(self, config: TrainConfig, folder: Path, tensorboard: Path, is_ours: bool) -> None:
        self._config, self._folder, self._tensorboard = config, folder, tensorboard
        wanted = is_ours and config.eval.pictures
        self.has_pictures = wanted and all(importlib.util.find_spec(name) for name in ("matplotlib", "pygame", "PIL"))
        self._wants_references = is_ours and config.eval.references
        self._references: References | None = None if self._wants_references else References(None, None)
        self._writer: SummaryWriter | None = None
        self._reference_writers: dict[str, SummaryWriter] = {}
        self._resumed_from: int | None = None
        self._recorder: Recorder | None = None
        self._end: Summary | None = None

    def open(self, writer: SummaryWriter, resumed_from: int | None) -> None:
        """Begin, with the run's ``writer``; a run that starts gets its settings and layout."""
        self._writer, self._resumed_from = writer, resumed_from
        start, session, self._end = hparams(hyper_parameters(self._config), dict.fromkeys(_METRICS, 0.0))  # type: ignore[no-untyped-call]
        if resumed_from is None:
            self._add(start)
            self._add(session)
            writer.add_text("config", f"```\n{format_yaml(to_dict(self._config))}\n```", 0)
            writer.add_custom_scalars(
                {page: {name: ["Multiline", tags] for name, tags in charts.items()} for page, charts in _CHARTS.items()}
            )

    def close(self, finished: bool = False) -> None:
        """Close what was opened here; ``finished`` notes the end of the run."""
        if finished and self._end is not None:
            self._add(self._end)
        for writer in self._reference_writers.values():
            writer.close()
        self._reference_writers.clear()

    def references(self, should_stop: Callable[[], bool]) -> References | None:
        """Return the references, which are played first if they are not known; None: asked to stop meanwhile."""

        def check() -> None:
            if should_stop():
                raise ReferencesStopped

        if self._references is None:
            try:
                self._references = play_references(self._config, self._folder / "references", check)
            except ReferencesStopped:
                return None
        return self._references

    def watch(self, core: SnakeCore) -> Callable[[], None]:
        """Return what an evaluation calls at each step, so that ``draw`` can show it: one easy world, one hard."""
        self._recorder = None

        def take() -> None:
            if self._recorder is None:
                count = joint_failed(core).sum(axis=1)
                self._recorder = Recorder(core, sorted({int(count.argmin()), int(count.argmax())}))
            self._recorder.take()

        return take

    def add_references(self, step: int) -> None:
        """Add a point at ``step`` to the constant curves of the references, under the tags of the evaluation."""
        named = {} if self._references is None else self._references.by_name()
        purge = 0 if self._resumed_from is None else self._resumed_from + 1
        for name, episodes in named.items():
            if name not in self._reference_writers:
                path = str(self._tensorboard / "reference" / name)
                self._reference_writers[name] = SummaryWriter(log_dir=path, purge_step=purge)
            for tag, value in means_of(episodes).items():
                self._reference_writers[name].add_scalar(f"eval/{tag}", value, step)

    def draw(self, columns: Columns, core: SnakeCore, step: int) -> None:
        """Draw what ``watch`` saw of an evaluation, and its score for each failed joint."""
        from snake_gym.render.animation import film_strip
        from snake_gym.render.plots import plot_joint_map

        assert self._recorder is not None
        recordings = self._recorder.recordings(f"{step:,} steps", "learned", self._config.eval.seed)
        self._add_picture("eval/film", film_strip(recordings), step)
        failed, name = joint_failed(core), core.task.score
        if name not in columns or not failed.any():
            return
        named = {} if self._references is None else self._references.by_name()
        rows = {"policy": np.asarray(columns[name], np.float64)}
        rows |= {key.replace("best_", ""): np.asarray(each.columns[name], np.float64) for key, each in named.items()}
        table = [scores_by_joint(values, failed) for values in rows.values()]
        counts = np.concatenate([[np.sum(~failed.any(axis=1))], failed.sum(axis=0)]).astype(int).tolist()
        quantity = {"progress_m": "progress [m]", "is_success": "success"}.get(name, name)
        picture = plot_joint_map(list(rows), table, counts, f"mean {quantity} where joint j fails, {step:,} steps")
        self._add_picture("eval/failed_joint", picture, step)

    def _add_picture(self, tag: str, png: bytes, step: int) -> None:
        width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))  # of the PNG's header
        image = Summary.Image(encoded_image_string=png, width=width, height=height, colorspace=3)
        self._add(Summary(value=[Summary.Value(tag=tag, image=image)]), step)

    def _add(self, summary: Summary, step: int = 0) -> None:
        assert self._writer is not None
        self._writer._get_file_writer().add_summary(summary, step)  # type: ignore[no-untyped-call]


def hyper_parameters(config: TrainConfig) -> dict[str, bool | float | str]:
    """Return the settings of a run that are hyper-parameters, by dotted name."""
    flat: dict[str, bool | float | str] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(inner, f"{path}.{key}" if path else str(key))
        elif value is not None and any(f"{path}.".startswith(f"{kept}.") for kept in _HYPER):
            flat[path] = value if isinstance(value, bool | int | float | str) else _as_text(value)

    walk(to_dict(config), "")
    controller = config.env.get("action", {}).get("controller")
    if isinstance(controller, Mapping) and "kind" in controller:
        flat["env.action.controller"] = str(controller["kind"])
    return flat


def _as_text(value: Sequence[Any]) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

"""What happens at each step of training, as an SB3 callback, and TensorBoard output that can be resumed."""

from __future__ import annotations

from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import TensorBoardOutputFormat
from torch.utils.tensorboard import SummaryWriter

from agents.display import TrainingDisplay
from agents.learner_state import unwrap
from agents.metrics import EpisodeWindow


class StepCallback(BaseCallback):
    """Takes each step into the episode statistics and shows the progress: a few array operations."""

    def __init__(self, window: EpisodeWindow, display: TrainingDisplay) -> None:
        super().__init__()
        self._window = window
        self._display = display

    def _on_training_start(self) -> None:
        self._venv = unwrap(self.training_env)

    def _on_step(self) -> bool:
        self._window.update(self._venv)
        self._display.advance(self.num_timesteps)
        return True


class ResumableTensorBoard(TensorBoardOutputFormat):
    """SB3's TensorBoard output; what a killed launch wrote after the step we resume from is hidden.

    Args:
        folder: where the event files go; every launch adds one.
        resumed_from: that step; None for a run that begins, or begins anew since it was killed before a checkpoint.
    """

    def __init__(self, folder: Path, resumed_from: int | None) -> None:
        purge_step = 0 if resumed_from is None else resumed_from + 1
        self.writer = SummaryWriter(log_dir=str(folder), purge_step=purge_step)
        self._is_closed = False

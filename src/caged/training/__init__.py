"""The training loop, early stopping and checkpoints."""

from caged.training.checkpoint import Checkpoint, StoredCheckpoint, load_checkpoint, save_checkpoint
from caged.training.loop import Interrupted, Loop, Observer, Progress, TrainConfig
from caged.training.stopping import EarlyStopping

__all__ = [
    "Checkpoint",
    "EarlyStopping",
    "Interrupted",
    "Loop",
    "Observer",
    "Progress",
    "StoredCheckpoint",
    "TrainConfig",
    "load_checkpoint",
    "save_checkpoint",
]

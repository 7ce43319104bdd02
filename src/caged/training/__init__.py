"""The training loop, early stopping and checkpoints."""

from caged.training.checkpoint import Checkpoint, StoredCheckpoint, load_checkpoint, save_checkpoint
from caged.training.decisions import Decisions, StageDecisions
from caged.training.loop import Interrupted, Loop, Observer, Progress, TrainConfig
from caged.training.stopping import EarlyStopping

__all__ = [
    "Checkpoint",
    "Decisions",
    "EarlyStopping",
    "Interrupted",
    "Loop",
    "Observer",
    "Progress",
    "StageDecisions",
    "StoredCheckpoint",
    "TrainConfig",
    "load_checkpoint",
    "save_checkpoint",
]

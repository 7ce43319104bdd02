"""Lists of a scorer at any strength: what runs and anybody's vectors have in common."""

from __future__ import annotations

import torch

from caged.data.interactions import Interactions
from caged.evaluation.adjust.choice import Adjustment
from caged.evaluation.adjust.of_scores import adjusted
from caged.evaluation.lists import Lists
from caged.evaluation.reference import Reference
from caged.evaluation.topk import top_k
from caged.models import Scorer
from caged.products.adjust.judge import Ranking


def ranking_of(scorer: Scorer, train: Interactions, device: torch.device | str = "cpu") -> Ranking:
    def rank(adjustment: Adjustment, reference: Reference, k: int) -> Lists:
        less_popular = adjusted(scorer, train, adjustment)
        return top_k(less_popular, reference.relevant_users, k, seen=reference.seen, device=device)

    return rank

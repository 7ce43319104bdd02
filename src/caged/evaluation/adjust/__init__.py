"""Popularity taken out after training, of any recommender: no training, one strength from 0 (as it was) to 1.

| form     | needs                         | new score                                                                 |
|---|---|---|
| `degree` | vectors, or lists with scores | s_ui - a sd_u log(1 + d_i) |
| `norm`   | vectors                       | e_u . e_i / |e_i|^a |
| `quota`  | lists with scores or ranks    | the best list whose share of niche items is at least a |

d_i is the training degree of the item, sd_u the standard deviation of the user's scores over the items that are not
among the user's training items (for lists: over the candidates given), a the strength. `degree` and `norm` leave a dot
product a dot product. Ideas: dividing item vectors by a power of their norm (TTEN, CIKM 2023), popularity compensation
(Zhu et al., WSDM 2021), re-ranking of given lists (xQuAD, Abdollahpouri et al. 2019).
"""

from caged.evaluation.adjust.choice import GRID, Adjustment, Chosen, choose_strength

__all__ = ["GRID", "Adjustment", "Chosen", "choose_strength"]

"""Two artefacts of one small shop whose ids and titles are as bad as they get."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import caged
from tests.conftest import Pair
from tests.products.serve.exported import exported

MARKUP = "<script>document.title='taken'</script>"  # an item id
UNSEEN = "Turned\u202e \x1b[2Jaround"  # a title
STRANGE = '"><img src=x onerror=alert(1)>'  # a user id
METHODS = ("lightgcn", "softmax")
_RENAMED = {"i03": MARKUP, "u05": STRANGE}


def write_shop(folder: Path, pairs: list[Pair]) -> list[Path]:
    """Artefacts by the names of their methods; i00 has most people, i39 fewest."""
    users, items = ([_RENAMED.get(name, name) for name in column] for column in zip(*pairs, strict=True))
    log = pa.table({"user_id": users, "item_id": items})
    titles = {f"i{number:02d}": f"The {number}th <b>River</b>" for number in range(40)} | {"i07": UNSEEN}
    names = [_RENAMED.get(name, name) for name in titles]
    for method in METHODS:
        options = {"embedding_size": 4, "epochs": 3, "batch_size": 128}
        model = caged.Recommender(method, device="cpu", **options).fit(log)
        saved = model.save(folder / f"{method}-model")
        pq.write_table(pa.table({"item_id": names, "title": list(titles.values())}), saved / "items.parquet")
        exported(saved, folder / method)
    return [folder / method for method in METHODS]

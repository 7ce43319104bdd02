"""The same lists as eleven libraries write them, each in its own schema and under its name in `docs/audit.md`.

How far each schema was checked:

- written by the library itself: implicit 0.7.3, LensKit 2025.8, Cornac 3.0, Surprise 1.1.5
- read in its source: RecTools 0.19, recommenders 1.2, ranx 0.3.21, Elliot 0.3.1
- partly read in its source: RecBole 1.2
- not checked against the library: RecPack, Spark ALS, LensKit before 2025, PyTerrier
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

LISTS = {0: [(4, 0.9), (2, 0.8), (7, 0.3)], 1: [(3, 2.5), (9, 1.5), (0, 0.5)], 3: [(8, 0.75), (1, 0.5), (5, 0.25)]}
ROWS = [(user, item, score, rank) for user, row in LISTS.items() for rank, (item, score) in enumerate(row, start=1)]


def _text(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def lenskit(folder: Path) -> Path:
    """`ItemListCollection.save_parquet`: a list of structs per user."""
    entry = pa.struct([("item_id", pa.int64()), ("rank", pa.int32()), ("score", pa.float32())])
    items = [
        [{"item_id": item, "rank": rank, "score": score} for rank, (item, score) in enumerate(row, start=1)]
        for row in LISTS.values()
    ]
    table = pa.table({"user_id": list(LISTS), "items": pa.array(items, pa.list_(entry))})
    pq.write_table(table, folder / "recs.parquet", compression="zstd")
    return folder / "recs.parquet"


def lenskit_classic(folder: Path) -> Path:
    """`lenskit.batch.recommend` before 2025."""
    header = "item,score,user,rank"
    return _text(folder / "recs.csv", [header, *(f"{i},{s},{u},{r}" for u, i, s, r in ROWS)])


def spark_als(folder: Path) -> Path:
    """`model.recommendForAllUsers(k).write.parquet`: arrays of structs in a folder of part files."""
    entry = pa.struct([("item", pa.int32()), ("rating", pa.float32())])
    out = folder / "DIR"
    out.mkdir()
    for number, (user, row) in enumerate(LISTS.items()):
        items = [[{"item": item, "rating": score} for item, score in row]]
        table = pa.table({"user": pa.array([user], pa.int32()), "recommendations": pa.array(items, pa.list_(entry))})
        pq.write_table(table, out / f"part-{number:05}-c000.snappy.parquet", compression="snappy")
    (out / "_SUCCESS").touch()
    (out / ".part-00000-c000.snappy.parquet.crc").write_bytes(b"crc")
    return out


def rectools(folder: Path) -> Path:
    """`model.recommend(...).to_csv`."""
    header = "user_id,item_id,score,rank"
    return _text(folder / "recs.csv", [header, *(f"{u},{i},{s},{r}" for u, i, s, r in ROWS)])


def elliot(folder: Path) -> Path:
    """`save_recs: True`: a .tsv without a header."""
    (folder / "recs").mkdir()
    return _text(folder / "recs" / "ItemKNN.tsv", [f"{u}\t{i}\t{s}" for u, i, s, _ in ROWS])


def recbole(folder: Path) -> Path:
    """Atomic files: every field has a type in the header."""
    header = "user_id:token\titem_id:token\tscore:float"
    return _text(folder / "recs.inter", [header, *(f"{u}\t{i}\t{s}" for u, i, s, _ in ROWS)])


def cornac(folder: Path) -> Path:
    """`model.recommend(user, k)` gives item ids, best first, as the text they are read as; a JSON object per user."""
    lines = [json.dumps({"user_id": str(user), "items": [str(item) for item, _ in row]}) for user, row in LISTS.items()]
    return _text(folder / "recs.jsonl", lines)


def surprise(folder: Path) -> Path:
    """`pd.DataFrame(algo.test(pairs)).to_csv(index=False)`."""
    lines = [f"{u},{i},,{s},{{'was_impossible': False}}" for u, i, s, _ in ROWS]
    return _text(folder / "predictions.csv", ["uid,iid,r_ui,est,details", *lines])


def implicit(folder: Path) -> Path:
    """`ids, scores = model.recommend(users, ...)`; `np.savez(file, ids, scores, users)`.

    Rows that find too little are filled up: with -1, or with the items that were to be left out, at the lowest score,
    and behind those with item 0.
    """
    lowest = np.finfo(np.float32).min
    filled = {0: ([-1, -1], [lowest, lowest]), 1: ([4, 0], [lowest, 0.0]), 3: ([6, 0], [lowest, lowest])}
    ids = np.array([[item for item, _ in row] + filled[user][0] for user, row in LISTS.items()], dtype=np.int32)
    scores = np.array([[score for _, score in row] + filled[user][1] for user, row in LISTS.items()], dtype=np.float32)
    np.savez(folder / "recs.npz", ids, scores, np.array(list(LISTS)))
    return folder / "recs.npz"


def trec(folder: Path) -> Path:
    """`qid Q0 docno rank score tag`, as trec_eval, PyTerrier and ranx write it; a tag may be any name."""
    return _text(folder / "ours.run", [f"{u} Q0 {i}\t{r}  {s} our own model" for u, i, s, r in ROWS])


def microsoft(folder: Path) -> Path:
    """`recommend_k_items`: userID, itemID, prediction."""
    users, items, scores, _ = zip(*ROWS, strict=True)
    pq.write_table(pa.table({"userID": users, "itemID": items, "prediction": scores}), folder / "top_k.parquet")
    return folder / "top_k.parquet"


def recpack(folder: Path) -> Path:
    """`sparse.save_npz(file, algorithm.predict(X))`: a matrix of scores."""
    users, items, scores, _ = zip(*ROWS, strict=True)
    sparse.save_npz(folder / "recs.npz", sparse.csr_matrix((scores, (users, items)), shape=(5, 10)))
    return folder / "recs.npz"


LIBRARIES: dict[str, Callable[[Path], Path]] = {
    "LensKit": lenskit,
    "LensKit before 2025": lenskit_classic,
    "Spark ALS": spark_als,
    "RecTools": rectools,
    "Elliot": elliot,
    "RecBole": recbole,
    "Cornac": cornac,
    "Surprise": surprise,
    "implicit": implicit,
    "TREC": trec,
    "Microsoft recommenders": microsoft,
    "RecPack": recpack,
}

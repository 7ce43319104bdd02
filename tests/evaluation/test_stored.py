"""Tables per user, read back from files or taken as they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caged.errors import RunError
from caged.evaluation.metrics import MetricKey
from caged.evaluation.stored import UserTable, write_user_table

TABLE = pa.table(
    {"user_id": ["b", "a", "c"], "user_group": ["diverse", None, "blockbuster"], "recall@5": [0.5, 0.0, 1.0]}
)


def test_a_file_and_a_table_give_the_same(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "per_user.parquet")
    for table in (UserTable.of_file(tmp_path / "per_user.parquet"), UserTable.of_table(TABLE)):
        np.testing.assert_array_equal(table.values_of(MetricKey("recall", 5)), [0.5, 0.0, 1.0])
        np.testing.assert_array_equal(table.values_of(MetricKey("recall", 5, "diverse")), [0.5, np.nan, np.nan])
        with pytest.raises(RunError, match="lack the column 'ndcg@5'"):
            table.values_of(MetricKey("ndcg", 5))


def test_users_in_common_whatever_the_order() -> None:
    other = UserTable.of_table(pa.table({"user_id": ["c", "x", "b"]}))
    rows, places = UserTable.of_table(TABLE).users.shared_with(other.users)
    assert (rows.tolist(), places.tolist()) == ([0, 2], [2, 0])


def test_a_damaged_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "per_user.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(RunError, match="is not readable"):
        UserTable.of_file(tmp_path / "per_user.parquet")


def test_a_table_in_parts_is_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "per_user.parquet"
    write_user_table((TABLE.slice(start, 2) for start in range(0, len(TABLE), 2)), path)
    assert pq.ParquetFile(path).num_row_groups == -(-len(TABLE) // 2)
    table = UserTable.of_file(path)
    assert {name: table[name].to_pylist() for name in TABLE.column_names} == TABLE.to_pydict()


def test_no_flipped_byte_is_read_as_another_value(tmp_path: Path) -> None:
    """Every byte of the pages; what a file says about itself at its end is no value."""
    path = tmp_path / "per_user.parquet"
    write_user_table(TABLE, path)
    whole = path.read_bytes()
    wanted = TABLE.to_pydict()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    for place in range(4, len(whole) - footer):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            table = UserTable.of_file(path)
            found = {name: table[name].to_pylist() for name in TABLE.column_names}
        except RunError:
            continue
        assert found == wanted, place

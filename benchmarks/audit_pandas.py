"""Every metric of an audit, the way most people would write it: pandas, one merge or group-by after the other.

The other side of `benchmarks/audit.py`. It was written once, for clarity and without loops over users, and checked
against the library's values; nothing in the library uses it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

GROUPS = ("niche-taste", "diverse", "blockbuster")


def gini(counts: pd.Series) -> float:
    count = len(counts)
    return float(((2 * np.arange(1, count + 1) - count - 1) * np.sort(counts)).sum() / (count * counts.sum()))


class PandasAudit:
    def __init__(self, recs: Path, train: Path, test: Path, k: int) -> None:
        self.k = k
        self.train = pd.read_parquet(train).drop_duplicates(["user_id", "item_id"])
        self.test = pd.read_parquet(test).drop_duplicates(["user_id", "item_id"])
        lists = pd.read_parquet(recs)
        order = ["user_id", "rank"] if "rank" in lists else ["user_id", "score", "item_id"]
        lists = lists.sort_values(order, ascending=[name != "score" for name in order])
        lists = lists.drop_duplicates(["user_id", "item_id"])
        lists["rank"] = lists.groupby("user_id").cumcount() + 1
        self.lists = lists[lists["rank"] <= 100][["user_id", "item_id", "rank"]]
        self.values: dict[str, float] = {}

    def run(self) -> dict[str, float]:
        self.describe_items()
        self.describe_users()
        self.join()
        self.accuracy()
        self.serendipity()
        self.popularity()
        self.correlation()
        self.exposure()
        self.attention()
        return self.values

    def mean(self, name: str, values: pd.Series, *, by_group: bool = False) -> None:
        self.values[f"{name.partition('/')[0]}@{self.k}" + ("/" + name.partition("/")[2] if "/" in name else "")] = (
            float(values.mean())
        )
        if by_group:
            means = values.groupby(self.user_group.reindex(values.index)).mean()
            for group in GROUPS:
                self.values[f"{name}@{self.k}/{group}"] = float(means.get(group, np.nan))

    # ------------------------------------------------------------ groups

    def describe_items(self) -> None:
        everything = [self.train["item_id"], self.test["item_id"], self.lists["item_id"]]
        catalogue = np.sort(pd.unique(pd.concat(everything)))
        degree = self.train.groupby("item_id")["user_id"].count().reindex(catalogue, fill_value=0)
        items = pd.DataFrame({"degree": degree, "row": np.arange(len(degree))})
        ordered = items[items["degree"] > 0].sort_values(["degree", "row"], ascending=[False, True])
        used, total = len(ordered), int(ordered["degree"].sum())
        through = ordered["degree"].cumsum()
        items["place"] = np.inf  # among the most popular; nobody knows items without training interactions
        items.loc[ordered.index, "place"] = np.arange(used)
        items["popular"] = False
        items.loc[ordered.index[: used // 5], "popular"] = True
        section = np.where(5 * (total - through) < total, 2, 1)
        section = np.where(5 * (through - ordered["degree"]) < total, 0, section)
        items["section"], items["bucket"] = 2, 9
        items.loc[ordered.index, "section"] = section
        items.loc[ordered.index, "bucket"] = 10 * np.arange(used) // used
        self.items = items

    def describe_users(self) -> None:
        train = self.train.merge(self.items, left_on="item_id", right_index=True)
        profile = train.groupby("user_id").agg(
            size=("item_id", "count"), popular=("popular", "sum"), degree=("degree", "mean")
        )
        share = (profile["popular"] / profile["size"]).sort_values(kind="stable")
        fifth = len(share) // 5
        group = pd.Series("diverse", index=share.index)
        group.iloc[:fifth] = "niche-taste"
        group.iloc[len(group) - fifth :] = "blockbuster"
        self.user_group, self.profile, self.trained = group.sort_index(), profile, train
        sections = train.groupby(["user_id", "section"]).size().unstack(fill_value=0)
        self.profile_sections = sections.reindex(columns=[0, 1, 2], fill_value=0)

    def join(self) -> None:
        relevant = self.test.assign(relevant=True)
        seen = self.train.assign(seen=True)
        lists = self.lists.merge(self.items, left_on="item_id", right_index=True, how="left")
        lists = lists.merge(relevant, on=["user_id", "item_id"], how="left")
        lists = lists.merge(seen, on=["user_id", "item_id"], how="left")
        lists["hit"] = lists["relevant"].notna()
        lists["unseen"] = lists["seen"].isna()
        self.lists = lists.sort_values(["user_id", "rank"])
        self.top = self.lists[self.lists["rank"] <= self.k]
        test = self.test.merge(self.items, left_on="item_id", right_index=True)
        self.relevant = test.groupby("user_id").agg(all=("item_id", "count"), popular=("popular", "sum"))
        self.relevant["niche"] = self.relevant["all"] - self.relevant["popular"]
        self.tested = test

    # ------------------------------------------------------------ metrics

    def accuracy(self) -> None:
        k = self.k
        ideal = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, k + 2)))))
        hits = self.top[self.top["hit"]].copy()
        hits["gain"] = 1 / np.log2(hits["rank"] + 1)
        hits["precision"] = (hits.groupby("user_id").cumcount() + 1) / hits["rank"]
        hits["persistent"] = 0.8 ** (hits["rank"] - 1)
        hits["early"] = hits["rank"] <= hits["user_id"].map(self.relevant["all"])
        for group in ("all", "popular", "niche"):
            suffix = "" if group == "all" else f"/{group}"
            relevant = self.relevant[group][self.relevant[group] > 0]
            mine = hits if group == "all" else hits[hits["popular"] == (group == "popular")]
            per_user = mine.groupby("user_id").agg(
                hits=("rank", "count"),
                gain=("gain", "sum"),
                first=("rank", "min"),
                precision=("precision", "sum"),
                persistent=("persistent", "sum"),
                early=("early", "sum"),
            )
            per_user = per_user.reindex(relevant.index)
            found = per_user["hits"].fillna(0)
            gain = per_user["gain"].fillna(0)
            self.mean(f"recall{suffix}", found / relevant, by_group=group == "all")
            self.mean(f"ndcg{suffix}", gain / ideal[np.minimum(relevant, k)], by_group=group == "all")
            if group == "all":
                self.mean("precision", found / k)
                self.mean("hit", (found > 0).astype(float))
                self.mean("mrr", (1 / per_user["first"]).fillna(0))
                self.mean("map", per_user["precision"].fillna(0) / np.minimum(relevant, k))
                self.mean("f1", 2 * found / (k + relevant))
                self.mean("r_precision", per_user["early"].fillna(0) / relevant)
                self.mean("rbp", 0.2 * per_user["persistent"].fillna(0))
            else:
                self.values[f"pooled_recall@{k}/{group}"] = float(found.sum() / relevant.sum())
        a, b = (self.values[f"pooled_recall@{k}/{group}"] for group in ("popular", "niche"))
        self.values[f"pop_reo@{k}"] = abs(a - b) / (a + b)

    def serendipity(self) -> None:
        """Hits that at least k items new to the user precede in popularity."""
        hits = self.top.loc[self.top["hit"], ["user_id", "item_id", "place"]]
        had = hits.merge(self.trained[["user_id", "place"]], on="user_id", suffixes=("", "_had"))
        before = (had["place_had"] < had["place"]).groupby([had["user_id"], had["item_id"]]).sum()
        known = pd.MultiIndex.from_frame(hits[["user_id", "item_id"]])
        unexpected = hits["place"].to_numpy() - before.reindex(known, fill_value=0).to_numpy() >= self.k
        found = hits.assign(unexpected=unexpected).groupby("user_id")["unexpected"].sum()
        self.mean("serendipity", found.reindex(self.relevant.index, fill_value=0) / self.k)

    def popularity(self) -> None:
        users = len(self.profile)
        top = self.top.assign(bits=-np.log2(np.maximum(self.top["degree"], 1) / users), niche=~self.top["popular"])
        lists = top.groupby("user_id").agg(
            arp=("degree", "mean"), tail_share=("niche", "mean"), aclt=("niche", "sum"), novelty=("bits", "mean")
        )
        profile = self.profile["degree"].reindex(lists.index)
        self.mean("arp", lists["arp"])
        self.mean("popularity_lift", (lists["arp"] - profile) / profile, by_group=True)
        self.mean("tail_share", lists["tail_share"], by_group=True)
        self.mean("aclt", lists["aclt"])
        self.mean("novelty", lists["novelty"])
        group = self.user_group.reindex(lists.index)
        both = lists["arp"].where(profile.notna())
        self.values[f"delta_gap@{self.k}"] = float(both.mean() / profile.mean() - 1)
        gap = both.groupby(group).mean() / profile.groupby(group).mean() - 1
        for name in GROUPS:
            self.values[f"delta_gap@{self.k}/{name}"] = float(gap.get(name, np.nan))
        sections = self.top.groupby(["user_id", "section"]).size().unstack(fill_value=0)
        q = sections.reindex(columns=[0, 1, 2], fill_value=0)
        p = self.profile_sections.reindex(q.index)
        p, q = p.div(p.sum(axis=1), axis=0), q.div(q.sum(axis=1), axis=0)
        m = (p + q) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            divergence = ((p * np.log2(p / m)).where(p > 0, 0) + (q * np.log2(q / m)).where(q > 0, 0)).sum(axis=1) / 2
        self.mean("upd", divergence.where(p.notna().all(axis=1)), by_group=True)

    def correlation(self) -> None:
        positions = self.top.loc[self.top["hit"], ["user_id", "item_id", "rank"]]
        pairs = self.tested.merge(positions, on=["user_id", "item_id"], how="left")
        pairs["rank"] = pairs["rank"].fillna(self.k + 1)
        by_user = pairs.groupby("user_id")
        x = by_user["degree"].rank() - (by_user["item_id"].transform("count") + 1) / 2
        y = by_user["rank"].rank() - (by_user["item_id"].transform("count") + 1) / 2
        sums = pd.DataFrame({"xy": x * y, "xx": x * x, "yy": y * y}).groupby(pairs["user_id"]).sum()
        spread = np.sqrt(sums["xx"] * sums["yy"])
        self.mean("pru", (-sums["xy"] / spread).where(spread > 0))

    def attention(self) -> None:
        """How unequally it is spread, and how little two lists share."""
        seen = (1 / np.log2(self.top["rank"] + 1)).groupby(self.top["item_id"]).sum()
        self.values[f"exposure_gini@{self.k}"] = gini(seen.reindex(self.items.index, fill_value=0.0))
        length = self.top.groupby("user_id")["rank"].transform("count")
        unit = (1 / np.sqrt(length)).groupby(self.top["item_id"]).sum()
        lists = self.top["user_id"].nunique()
        self.values[f"personalisation@{self.k}"] = float(1 - ((unit**2).sum() - lists) / (lists * (lists - 1)))

    def exposure(self) -> None:
        k, items = self.k, self.items
        shown = self.top.groupby("item_id")["user_id"].count().reindex(items.index, fill_value=0)
        count, total = len(items), int(shown.sum())
        self.values[f"coverage@{k}"] = float((shown > 0).mean())
        self.values[f"gini@{k}"] = gini(shown)
        share = shown[shown > 0] / total
        self.values[f"entropy@{k}"] = float(-(share * np.log2(share)).sum() / np.log2(count))
        p = shown.groupby(items["bucket"]).sum() / total
        q = items.groupby("bucket")["degree"].sum() / items["degree"].sum()
        p = p[p > 0]
        self.values[f"exposure_kl@{k}"] = float((p * np.log2(p / q.reindex(p.index))).sum())
        listed = self.top["user_id"].unique()
        for group in ("popular", "niche"):
            chosen = items["popular"] == (group == "popular")
            self.values[f"coverage@{k}/{group}"] = float((shown[chosen] > 0).mean())
            mine = self.top[self.top["popular"] == (group == "popular")]
            owned = self.trained[self.trained["popular"] == (group == "popular")].groupby("user_id").size()
            eligible = int(chosen.sum()) * len(listed) - int(owned.reindex(listed).fillna(0).sum())
            self.values[f"exposure_rate@{k}/{group}"] = float(mine["unseen"].sum() / eligible)
        a, b = (self.values[f"exposure_rate@{k}/{group}"] for group in ("popular", "niche"))
        self.values[f"pop_rsp@{k}"] = abs(a - b) / (a + b)

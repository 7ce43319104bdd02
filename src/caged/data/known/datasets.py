"""The table of known datasets: what they are, where they come from, under which terms, and how to know them again.

A checksum is the `Interactions.fingerprint` of a part, taken over its canonical sorted pairs: it says that the pairs
are the published ones, whatever archive or file format they came in. A public home carries the date on which its
download was last seen to give these pairs, or none where that was never tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from caged.data.known.layouts import (
    Layout,
    Titles,
    csv_titles,
    delimited,
    dense_matrix,
    has_columns,
    separated_titles,
    star_intervals,
    starts_with_numbers,
)
from caged.data.readers.columns import Columns


@dataclass(frozen=True)
class PlainFile:
    """A file to fetch and the name it gets in the dataset's folder."""

    url: str
    name: str


@dataclass(frozen=True)
class Archive:
    """A zip or tar archive to fetch, and the files to take out of it, whatever folder they lie in there."""

    url: str
    names: tuple[str, ...]
    optional: tuple[str, ...] = ()  # taken where they are there

    @property
    def file_name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Home:
    """Where a dataset is public. Without downloads it has to be fetched by hand."""

    page: str
    downloads: tuple[PlainFile | Archive, ...] = ()
    verified: date | None = None

    @property
    def status(self) -> str:
        return f"verified: {self.verified or 'none'}"


@dataclass(frozen=True)
class Dataset:
    """A row of the table. Users, items and interactions are those of the published files."""

    name: str
    title: str
    folder: str
    layouts: tuple[Layout, ...]
    users: int
    items: int
    interactions: int
    fingerprints: Mapping[str, str]  # part -> SHA-256 of its sorted pairs, as `caged.data.load` gives them
    terms: str
    citation: str
    home: Home | None = None
    partial: str | None = None  # what is missing; None: complete
    drops_overlap: bool = False  # whether pairs of train that are in test too are taken out of test
    liked_from: float | None = None  # the rating from which on a pair was liked; test pairs below are test_negative
    notes: tuple[str, ...] = ()  # what everybody who loads it should know
    titles_of: str | None = None  # the dataset that names its items
    display: str | None = None  # its name in the tables of papers; None: `name`

    @property
    def can_be_downloaded(self) -> bool:
        return self.home is not None and bool(self.home.downloads)

    def find(self, folder: Path) -> tuple[Layout, dict[str, Path]] | None:
        """The first of its forms whose files are all in `folder`, and these files."""
        for layout in self.layouts:
            files = layout.find(folder)
            if files is not None:
                return layout, files
        return None

    @property
    def wanted_files(self) -> str:
        """The files of each form in words."""
        return " or ".join(" and ".join(layout.files.values()) for layout in self.layouts)


# ---------------------------------------------------------------- the rows

_USER_ITEM = Columns(user="user", item="item")
_TEXT_SPLIT = Layout({"train": "train.txt", "test": "test.txt"})
_LICENCE = "README_original.txt"

_MOVIELENS = "Harper & Konstan 2015, The MovieLens Datasets: History and Context, doi 10.1145/2827872"
_MOVIELENS_TERMS = "research use with acknowledgement; no redistribution without permission; no commercial use"
_CAGED_REPOSITORY = "https://github.com/QueYork/CAGED"
_CAGED_FILES = "https://raw.githubusercontent.com/QueYork/CAGED/HEAD/dataset"
_LIGHTGCN_REPOSITORY = "https://github.com/gusye1234/LightGCN-PyTorch"
_LIGHTGCN_FILES = "https://raw.githubusercontent.com/gusye1234/LightGCN-PyTorch/master/data"
_LIGHTGCN = "He et al. 2020, LightGCN (the split); "
_CAGED = "the CAGED paper and its repository QueYork/CAGED (the split); "
_MOVIELENS_FILES = "https://files.grouplens.org/datasets/movielens"


def _two_files(page: str, folder: str) -> Home:
    return Home(page, (PlainFile(f"{folder}/train.txt", "train.txt"), PlainFile(f"{folder}/test.txt", "test.txt")))


_ROWS = (
    Dataset(
        name="ml-1m",
        display="MovieLens-1M",
        title="MovieLens-1M, all ratings, with titles; ids are UserID - 1 and MovieID - 1",
        folder="ml1m",
        layouts=(
            Layout(
                {"log": "interactions.parquet"},
                columns=Columns(
                    user="user", item="item", rating="rating_lo", keep=("rating_hi", "time_rank", "caged_test")
                ),
                looks_right=has_columns("user", "item", "rating_lo", "rating_hi"),
                remark=star_intervals,
                titles=Titles("movies.dat", separated_titles("::", id_base=1)),
                beside=(_LICENCE, "true_ratings_10_per_user.parquet"),
            ),
            Layout(
                {"log": "ratings.dat"},
                read=delimited("::", id_base=1, timestamp=True),
                titles=Titles("movies.dat", separated_titles("::", id_base=1)),
                beside=("README",),
            ),
        ),
        users=6_040,
        items=3_706,
        interactions=1_000_209,
        fingerprints={"log": "270d6a13651441b3cae680a46b19d9cdf3f4fb956ca06da8df29be6b0ec379b3"},
        terms=_MOVIELENS_TERMS,
        citation=_MOVIELENS,
        home=Home(
            "https://grouplens.org/datasets/movielens/1m/",
            (Archive(f"{_MOVIELENS_FILES}/ml-1m.zip", ("ratings.dat", "movies.dat"), optional=("README",)),),
        ),
    ),
    Dataset(
        name="ml-100k",
        display="MovieLens-100K",
        title="MovieLens-100K, ratings, timestamps, titles",
        folder="ml100k",
        layouts=(
            Layout(
                {"log": "ratings.parquet"},
                columns=_USER_ITEM,
                looks_right=has_columns("user", "item"),
                titles=Titles("u.item", separated_titles("|")),
                beside=(_LICENCE,),
            ),
            Layout(
                {"log": "u.data"},
                read=delimited("\t", timestamp=True),
                titles=Titles("u.item", separated_titles("|")),
                beside=("README",),
            ),
        ),
        users=943,
        items=1_682,
        interactions=100_000,
        fingerprints={"log": "21a3fc2958210e359381237a82bfa4b05ff24d9709b4d33cb843a0019b114401"},
        terms=_MOVIELENS_TERMS,
        citation=_MOVIELENS,
        home=Home(
            "https://grouplens.org/datasets/movielens/100k/",
            (Archive(f"{_MOVIELENS_FILES}/ml-100k.zip", ("u.data", "u.item"), optional=("README",)),),
        ),
    ),
    Dataset(
        name="ml-latest-small",
        display="MovieLens-small",
        title="MovieLens latest-small of 09/2018, ratings, timestamps, titles",
        folder="ml_latest_small",
        layouts=(
            Layout(
                {"log": "ratings.parquet"},
                columns=_USER_ITEM,
                looks_right=has_columns("user", "item"),
                titles=Titles("movies.csv", csv_titles),
            ),
            Layout(
                {"log": "ratings.csv"},
                columns=Columns(user="userId", item="movieId"),
                titles=Titles("movies.csv", csv_titles),
                beside=("README.txt",),
            ),
        ),
        users=610,
        items=9_724,
        interactions=100_836,
        fingerprints={"log": "e084063a7f3e4099f8756644220fbf166a8b51f52c41d54e632fc387bdf87cee"},
        terms="research use, redistribution under the same conditions, no commercial use without permission",
        citation=_MOVIELENS,
        home=Home(
            "https://grouplens.org/datasets/movielens/latest/",
            (
                Archive(
                    f"{_MOVIELENS_FILES}/ml-latest-small.zip", ("ratings.csv", "movies.csv"), optional=("README.txt",)
                ),
            ),
        ),
    ),
    Dataset(
        name="gowalla",
        display="Gowalla",
        title="Gowalla check-ins, LightGCN benchmark split",
        folder="gowalla",
        layouts=(_TEXT_SPLIT,),
        users=29_858,
        items=40_981,
        interactions=1_027_370,
        fingerprints={
            "train": "d7829d518e5989f61845506d12aff6986133f54bf53a0c16ea72f131d5a4b6a7",
            "test": "4f3ed606348043f2d5a5644f95e721205c699945ca48cd9c471c4bce02e3ca47",
        },
        terms="unknown; SNAP Gowalla check-ins, research use",
        citation=f"{_LIGHTGCN}SNAP Gowalla",
        home=_two_files(_LIGHTGCN_REPOSITORY, f"{_LIGHTGCN_FILES}/gowalla"),
    ),
    Dataset(
        name="yelp2018",
        display="Yelp2018",
        title="Yelp2018, LightGCN benchmark split",
        folder="yelp2018",
        layouts=(_TEXT_SPLIT,),
        users=31_668,
        items=38_048,
        interactions=1_561_406,
        fingerprints={
            "train": "a361f5b2462b1278cd81c33cfe8428b92927cf063bd491dbf7dc6af49a7e93d8",
            "test": "09b7a3a5bd28d10715cd4728c7353e8bcdf8bc9719717c8a36affbb70dfb542f",
        },
        terms="Yelp Open Dataset terms: academic use",
        citation=f"{_LIGHTGCN}Yelp Open Dataset",
        home=_two_files(_LIGHTGCN_REPOSITORY, f"{_LIGHTGCN_FILES}/yelp2018"),
    ),
    Dataset(
        name="yelp2018-ood",
        display="Yelp2018-OOD",
        title="Yelp2018 with validation, a test of the same distribution and a popularity-balanced one",
        folder="yelp2018_ood",
        layouts=(
            Layout({"train": "train.txt", "valid": "valid.txt", "test": "test_id.txt", "test_ood": "test_ood.txt"}),
        ),
        users=31_668,
        items=38_048,
        interactions=1_561_406,
        fingerprints={
            "train": "309b6d4d3d32a9454b09aac00df9f1154b26259cbeef58b3dd142a32cd437685",
            "valid": "1d7c6d737dcb57a2a39fe750bec58dbd99e4266f0ff86d1996216b904bcaeb1f",
            "test": "3cdfa0d81af60a6a8e4b794b7f3e956d20aa60b9844c6f09b3c86bf9b89b237e",
            "test_ood": "ce5280201e008c14e7a21bcfe09790bee03c01283b7f742c720957145d994022",
        },
        terms="Yelp Open Dataset terms: academic use",
        citation="the AdvDrop repository Arthurma71/AdvDrop (the split); Yelp Open Dataset",
        home=Home(
            "https://github.com/Arthurma71/AdvDrop",
            (
                Archive(
                    "https://raw.githubusercontent.com/Arthurma71/AdvDrop/HEAD/Data/yelp2018.new.zip",
                    ("train.txt", "valid.txt", "test_id.txt", "test_ood.txt"),
                ),
            ),
        ),
        notes=(
            "yelp2018-ood has two tests: test is test_id, distributed as train is; test_ood, whose items are sampled "
            "about uniformly, comes beside it",
        ),
    ),
    Dataset(
        name="coat",
        display="Coat",
        title="Coat Shopping: self-selected train, test of items shown uniformly at random",
        folder="coat",
        layouts=(
            Layout(
                {"train": "train.parquet", "test": "test.parquet"},
                columns=_USER_ITEM,
                looks_right=has_columns("user", "item"),
                beside=(
                    "user_features.ascii",
                    "user_features_map.txt",
                    "item_features.ascii",
                    "item_features_map.txt",
                ),
            ),
            Layout({"train": "train.ascii", "test": "test.ascii"}, read=dense_matrix),
        ),
        users=290,
        items=300,
        interactions=11_600,
        fingerprints={
            "train": "1aa40564b7a92b2f4f887e757e8d0ce00c6963fec5c17b6b4b908b0b976f43a4",
            "test": "e8092d7db7569cc1026d5a749a5d0f6fa9c823b8e7e703361d41476440de5c91",
            "test_negative": "a08d627cb0b8283e763de2cdfa02676cff6da5ed1aeb81ad574874578889d9b5",
        },
        terms="published for research; no explicit licence known",
        citation="Schnabel et al. 2016, Recommendations as Treatments",
        home=Home(
            "https://github.com/DongHande/AutoDebias",
            (
                PlainFile(
                    "https://raw.githubusercontent.com/DongHande/AutoDebias/HEAD/datasets/coat/train.ascii",
                    "train.ascii",
                ),
                PlainFile(
                    "https://raw.githubusercontent.com/DongHande/AutoDebias/HEAD/datasets/coat/test.ascii",
                    "test.ascii",
                ),
            ),
        ),
        drops_overlap=True,
        liked_from=4.0,
        notes=(
            "coat: pairs rated 4 or more are liked (--min-rating sets another bound); what chance showed and was rated "
            "lower is test_negative",
        ),
    ),
    Dataset(
        name="kuairand",
        display="KuaiRand",
        title="KuaiRand: train and valid from ordinary traffic, test of videos shown at random, liked or not",
        folder="kuairand",
        layouts=(
            Layout(
                {
                    "train": "train.txt",
                    "valid": "valid.txt",
                    "test": "test.txt",
                    "test_negative": "test_negative.txt",
                }
            ),
        ),
        users=19_685,
        items=5_169,
        interactions=628_544,
        fingerprints={
            "train": "d476527b585d23c2d3ba89e4f730613a413b02fd4752716e8c3d67d886b4d9bf",
            "valid": "71c89ad14a7aaf96463a3e4722fbf79ada0e7de9e427d9445d28fc52cfb43c30",
            "test": "912121dcfc3f00452e6e79d158a00932d45420a87088b597ffa5f1f3cfc05cc2",
            "test_negative": "b710c770786ea5d98aa82b05020708b1fe61ef7270c5bdf2865a8000586d3464",
        },
        terms="CC BY-SA 4.0: name the authors and keep the licence with copies",
        citation="Gao et al. 2022, KuaiRand (CIKM); LehengTHU/CF_Rec (this preparation; its threshold of positive "
        "feedback is not documented)",
        home=Home("https://github.com/LehengTHU/CF_Rec"),
        notes=(
            "kuairand: test holds positive feedback on videos that were inserted at random, test_negative those that "
            "got none; judge by shown_auc, since recall over the whole catalogue is near chance here",
        ),
    ),
    Dataset(
        name="lastfm",
        display="LastFM",
        title="HetRec LastFM with play counts as ratings, split of LightGCN-PyTorch",
        folder="lastfm",
        layouts=(
            Layout(
                {"train": "train.tsv", "test": "test.tsv"},
                read=delimited("\t"),
                looks_right=starts_with_numbers,
                beside=("trustnetwork.tsv",),
            ),
        ),
        users=1_880,
        items=4_489,
        interactions=52_668,
        fingerprints={
            "train": "d60d87cbc7ecc2696d86c1871b1a7218bf0c6cef491b343c57f26c994fdd984b",
            "test": "feb3b6ebde0dfce897e811cc44c1e6603649954fa3ca4fad7624b77ee9bacc19",
        },
        terms="HetRec 2011 / Last.fm: non-commercial research",
        citation="HetRec 2011; LightGCN-PyTorch (the split)",
        home=Home(
            _LIGHTGCN_REPOSITORY,
            (
                PlainFile(f"{_LIGHTGCN_FILES}/lastfm/data1.txt", "train.tsv"),
                PlainFile(f"{_LIGHTGCN_FILES}/lastfm/test1.txt", "test.tsv"),
            ),
        ),
    ),
    Dataset(
        name="ml-1m-caged",
        display="MovieLens-1M",
        title="MovieLens-1M, official CAGED split; items are those of ml-1m",
        folder="caged_movie",
        layouts=(_TEXT_SPLIT,),
        users=6_040,
        items=3_706,
        interactions=1_000_209,
        fingerprints={
            "train": "a36a3004c6f192c8edc55ad4f12277315db136c96121173caa6e821f845bd4f7",
            "test": "9cc3a47c4bb982c8186a6ea8564cd5fc6ce7d00cc7614353d244805c8c9baf1c",
        },
        terms=_MOVIELENS_TERMS,
        citation=f"{_CAGED}{_MOVIELENS}",
        home=_two_files(_CAGED_REPOSITORY, f"{_CAGED_FILES}/movie"),
        titles_of="ml-1m",
    ),
    Dataset(
        name="epinions-caged",
        display="Epinions",
        title="Epinions, official CAGED split",
        folder="caged_epinions",
        layouts=(_TEXT_SPLIT,),
        users=11_496,
        items=11_656,
        interactions=327_942,
        fingerprints={
            "train": "bb47868caff30de3c30a9164dcc9632ebfd7ef32256e6a1986920a0145030bbf",
            "test": "6ae385d23832db0dabd57cbc2004ba87ceb71bda3ad0ea678301199231ec2b3f",
        },
        terms="unknown; Epinions crawl, long public for research",
        citation=f"{_CAGED}Epinions",
        home=_two_files(_CAGED_REPOSITORY, f"{_CAGED_FILES}/epinions"),
    ),
    Dataset(
        name="pinterest-caged",
        display="Pinterest",
        title="Pinterest, official CAGED split, users 0..37500 only",
        folder="caged_pinterest",
        layouts=(
            Layout(
                {"train": "train_users_0_37500.txt", "test": "test_users_0_37500.txt"},
                beside=("official_test_all_users.txt",),
            ),
        ),
        users=37_501,
        items=9_836,
        interactions=1_000_154,
        fingerprints={
            "train": "3f816ea1b96ed7c36564ec6d32c79c08e61fb7160c41c26748b419f47aaeb4dd",
            "test": "d26e4740c1e5a0b8085f668b94466b71702c39421a087e43d1b30a3dea61723a",
        },
        terms="unknown; Pinterest-ICCV crawl, research use",
        citation=f"{_CAGED}Geng et al. 2015; He et al. 2017 (NCF)",
        home=Home(_CAGED_REPOSITORY),
        partial="37,501 of 55,186 users and 9,836 of 9,916 items; not comparable with published Pinterest results",
    ),
)
DATASETS = {dataset.name: dataset for dataset in _ROWS}


def dataset_title(data: str) -> str:
    """As papers call it; a part of a dataset says how much of it there is.

    >>> dataset_title("epinions-caged"), dataset_title("pinterest-caged"), dataset_title("ours")
    ('Epinions', 'Pinterest (37,501 of 55,186 users)', 'ours')
    """
    known = DATASETS.get(data)
    if known is None:
        return data
    part = f" ({known.partial.partition(' and ')[0]})" if known.partial else ""
    return (known.display or data) + part

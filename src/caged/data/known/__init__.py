"""Datasets that are known by name: what they are, where they lie, how to get them.

datasets   the table, one row per dataset
layouts    how their files are read, in each form in which they are found
folder     where they lie on this machine
acquire    putting one there: `caged data get`
download   a file from the web, complete or absent
archives   named files out of an archive that nobody vouches for
"""

from caged.data.known.datasets import DATASETS, Dataset, dataset_title
from caged.data.known.folder import data_folder, dataset_in, dataset_named, folder_of

__all__ = ["DATASETS", "Dataset", "data_folder", "dataset_in", "dataset_named", "dataset_title", "folder_of"]

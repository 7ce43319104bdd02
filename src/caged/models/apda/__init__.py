"""APDA (SIGIR 2023). Begin with `method`; `rows` are the disturbed rows that it propagates."""

from caged.models.apda.method import APDA, APDAConfig

__all__ = ["APDA", "APDAConfig"]

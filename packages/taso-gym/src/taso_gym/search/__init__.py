"""Searches over the graphs that substitutions reach; one file each, one row in `SEARCHES`."""

from taso_gym.search.run import SEARCHES, Budget, Progress, SearchResult, run
from taso_gym.search.searcher import Searcher

__all__ = ["SEARCHES", "Budget", "Progress", "SearchResult", "Searcher", "run"]

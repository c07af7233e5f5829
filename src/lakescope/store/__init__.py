"""The index on disk: a manifest, immutable segments, checksums, one writer at a time, one atomic publish."""

from lakescope.store.index import Index
from lakescope.store.writer import IndexWriter

__all__ = ["Index", "IndexWriter"]

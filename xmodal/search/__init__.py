"""Search among one's own images: an index on the disk, its queries, and a page."""

from xmodal.search.catalogue import Filter
from xmodal.search.index import ImageIndex
from xmodal.search.query import Hit, Query

__all__ = ['Filter', 'Hit', 'ImageIndex', 'Query']

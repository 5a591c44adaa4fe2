"""Queries, and what they find."""

from typing import NamedTuple

from xmodal.search.catalogue import IndexedImage

_NOT, _ALSO = ' and not ', ' and also '


class Query(NamedTuple):
    """What is looked for: a text, an image, or both, and not another text.

    Attributes:
        text: of what is searched; 'A and also B' is the union of A and B.
        image: more like this: anything that the inferencer takes as an image.
        without: a text; its vector is subtracted.
    """

    text: str | None = None
    image: object = None
    without: str | None = None

    @property
    def texts(self) -> list[str]:
        """A and B of 'A and also B'; one text, or none."""
        parts = (part.strip() for part in (self.text or '').split(_ALSO))
        return [part for part in parts if part]

    @property
    def sentence(self) -> str:
        """'A and B' of 'A and also B', for a model that compares one sentence with an image."""
        return ' and '.join(self.texts)

    @classmethod
    def parse(cls, text: str | None, image: object = None) -> 'Query':
        """Reads 'A and not B' as A without B.

        Raises:
            ValueError: when there is neither a text nor an image, nothing before or after 'and
                not', or more than one text after it.
        """
        text, found, without = f' {text or ""} '.partition(_NOT)
        if found and not (text.strip() and without.strip()):
            raise ValueError("expected a text before and after 'and not'")
        if _NOT in without or _ALSO in without:
            raise ValueError(f"expected one text after 'and not', found '{without.strip()}'")
        query = cls(text.strip() or None, image, without.strip() or None)
        query.require_content()
        return query

    def require_content(self) -> None:
        """Refuses a query that looks for nothing.

        Raises:
            ValueError: when there is neither a text nor an image.
        """
        if not self.texts and self.image is None:
            raise ValueError('the query is empty: expected a text, an image, or both')


class Hit(NamedTuple):
    """An image that was found.

    Attributes:
        image: from the catalogue.
        score: cosine of the query and the image.
        reranked: what the fusion encoder ranks by: a logit, and no probability; None where it was
            not asked.
    """

    image: IndexedImage
    score: float
    reranked: float | None = None

    def as_dict(self) -> dict:
        """For JSON."""
        p = self.image
        return {
            'id': p.id, 'path': p.path, 'score': self.score, 'reranked': self.reranked,
            'width': p.width, 'height': p.height, 'taken': p.taken,
        }  # fmt: skip

"""What an index needs of a model: vectors and heat maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from xmodal.search.query import Query
from xmodal.structures import Tokens


@torch.no_grad()
def query_vectors(inferencer: Any, queries: Sequence[Query]) -> np.ndarray:
    """The vectors of queries, float32 (Q, d): text + image − without, of length 1.

    Raises:
        ValueError: when there is no word in a text.
    """
    groups = [texts for q in queries for texts in (q.texts, [q.without]) if any(texts)]
    images = [q.image for q in queries if q.image is not None]
    text_rows, image_rows = iter(text_vectors(inferencer, groups)), iter(())
    if images:
        image_rows = iter(inferencer.encode_images(images).embedding.float().cpu().numpy())
    vectors = []
    for query in queries:
        vector = next(text_rows) if any(query.texts) else 0
        if query.without:
            vector = vector - next(text_rows)
        if query.image is not None:
            vector = vector + next(image_rows)
        combined = query.without or (any(query.texts) and query.image is not None)
        vectors.append(_unit(vector) if combined else vector)
    return np.ascontiguousarray(np.stack(vectors), np.float32)


def text_vectors(inferencer: Any, groups: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """The vector of each group of texts, float32 (d,), of length 1.

    A dual encoder pools the words of all texts of a group as one set: a sketch of T-EMDE is that
    of the union. Of other models it is the sum of the texts' vectors.
    """
    encoded = inferencer.encode_texts([text for texts in groups for text in texts])
    pool = getattr(getattr(inferencer.model, 'similarity', None), 'text_vectors', None)
    vectors, first = [], 0
    for texts in groups:
        rows = torch.arange(first, first + len(texts), device=encoded.embedding.device)
        first += len(texts)
        if len(texts) == 1 or pool is None:
            vector = encoded.embedding[rows].sum(0)
        else:
            words, mask, *_ = encoded.tokens.select(rows)
            vector = pool(Tokens(words.flatten(0, 1)[None], mask.flatten()[None]))[0]
        vector = vector.float().cpu().numpy()
        vectors.append(vector if len(texts) == 1 else _unit(vector))
    return vectors


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-12)


def word_maps(inferencer: Any, text: str, image: bytes) -> list[tuple[str, np.ndarray]]:
    """The heat map of each word on an image, float32 (h, w); first '' with that of the whole text.

    Word pieces are joined to words, whose maps are the mean of those of the pieces.

    Raises:
        ValueError: when the model has no ITM head.
    """
    inferencer.model.require_matching_head()
    # Heat maps import all models; a search needs none.
    from xmodal.models.base.tokenizer import words_with_places
    from xmodal.visualization.grad_cam import grad_cam

    encoded_image, encoded_text = inferencer.encode([image], [text])
    maps, whole = grad_cam(inferencer.model, encoded_image.tokens, encoded_text.tokens)
    of_pieces = maps[0].float().cpu().numpy()
    preprocessor = inferencer.model.data_preprocessor
    text, longest = inferencer.clean_text(text), preprocessor.max_length
    with inferencer.lock:
        words = words_with_places(preprocessor.tokenizer, text, longest)
    means = [(word, of_pieces[places].mean(0)) for word, places in words]
    return [('', whole[0].float().cpu().numpy()), *means]

"""Score matrices on disk, and ensembles of models."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from xmodal.evaluation.retrieval import Gallery


class ScoreMatrix(NamedTuple):
    """The scores of every image with every caption of a test set.

    Attributes:
        scores: float64, higher is better, (I, T).
        text_to_image: row of the image that each caption describes, (T,) int64.
        image_ids: (I,) int64.
        captions: (T,) str.
    """

    scores: np.ndarray
    text_to_image: np.ndarray
    image_ids: np.ndarray
    captions: np.ndarray

    @property
    def gallery(self) -> Gallery:
        """The input of the metrics."""
        return Gallery(torch.from_numpy(self.scores), torch.from_numpy(self.text_to_image))


def write_scores(file: str | Path, matrix: ScoreMatrix) -> None:
    """Writes a new ``.npz`` file.

    Raises:
        FileExistsError: when the file exists already.
    """
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with open(file, 'xb') as output:
        np.savez(output, **matrix._asdict())


def read_scores(file: str | Path) -> ScoreMatrix:
    """Reads a file of :func:`write_scores`.

    Raises:
        FileNotFoundError: when the file does not exist.
        ValueError: when it has other content.
    """
    with np.load(file) as content:
        if missing := set(ScoreMatrix._fields) - set(content):
            raise ValueError(
                f'{file} has no {sorted(missing)}: it is not a score matrix written by '
                'test_cfg.save_scores'
            )
        return ScoreMatrix(*(content[name] for name in ScoreMatrix._fields))


def average_scores(files: list[str | Path]) -> ScoreMatrix:
    """The mean of several models' scores of one test set, in float64.

    SGRAF is the mean of the scores of SAF and SGR (Diao et al., AAAI 2021).

    Raises:
        ValueError: when two files do not have the same images and captions in the same order.
    """
    first = read_scores(files[0])
    total = first.scores.astype(np.float64)
    for file in files[1:]:
        other = read_scores(file)
        for name in ('image_ids', 'captions', 'text_to_image'):
            values, expected = getattr(other, name), getattr(first, name)
            if not np.array_equal(values, expected):
                raise ValueError(
                    f'{file} and {files[0]} are not of the same test set: their {name} differ '
                    f'({len(values)} and {len(expected)} values)'
                )
        total += other.scores
    return first._replace(scores=total / len(files))

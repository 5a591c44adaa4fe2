"""Score matrices on disk, and the ensemble of several models."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from xmodal.evaluation.retrieval import Gallery


class ScoreMatrix(NamedTuple):
    """What a model says of every image with every caption of a test set.

    Attributes:
        scores: float64, higher is better, (I, T).
        owner: row of the image each caption belongs to, (T,) int64.
        image_ids: (I,) int64.
        captions: (T,) str.
    """

    scores: np.ndarray
    owner: np.ndarray
    image_ids: np.ndarray
    captions: np.ndarray

    @property
    def gallery(self) -> Gallery:
        """What the metrics take."""
        return Gallery(torch.from_numpy(self.scores), torch.from_numpy(self.owner))


def write_scores(file: str | Path, matrix: ScoreMatrix) -> None:
    """Writes a new ``.npz`` file.

    Raises:
        FileExistsError: when there is one.
    """
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with open(file, 'xb') as output:
        np.savez(output, **matrix._asdict())


def read_scores(file: str | Path) -> ScoreMatrix:
    """Reads what :func:`write_scores` wrote.

    Raises:
        FileNotFoundError: when there is no such file.
        ValueError: when it is another one.
    """
    with np.load(file) as content:
        if missing := set(ScoreMatrix._fields) - set(content):
            raise ValueError(
                f'{file} has no {sorted(missing)}: it is no score matrix that '
                'test_cfg.save_scores wrote'
            )
        return ScoreMatrix(*(content[name] for name in ScoreMatrix._fields))


def average_scores(files: list[str | Path]) -> ScoreMatrix:
    """The mean of several models' scores of one test set, in float64.

    SGRAF is the mean of the scores of SAF and SGR (Diao et al., AAAI 2021).

    Raises:
        ValueError: when two files are not of the same images and captions in the same order.
    """
    first = read_scores(files[0])
    total = first.scores.astype(np.float64)
    for file in files[1:]:
        other = read_scores(file)
        for name in ('image_ids', 'captions', 'owner'):
            found, expected = getattr(other, name), getattr(first, name)
            if not np.array_equal(found, expected):
                raise ValueError(
                    f'{file} and {files[0]} are not of the same test set: their {name} differ '
                    f'({len(found)} and {len(expected)} of them)'
                )
        total += other.scores
    return first._replace(scores=total / len(files))

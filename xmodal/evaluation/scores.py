"""Score matrices on disk, and ensembles of models."""

from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_STORED, ZipFile

import numpy as np
import torch

from xmodal.evaluation.retrieval import Gallery
from xmodal.files import FileError, atomic_write, explain_errors


class ScoreMatrix(NamedTuple):
    """The scores of every image with every caption of a test set.

    Attributes:
        scores: float64, higher is better, (I, T).
        text_to_image: row of the image that each caption describes, (T,) int64.
        image_ids: (I,) int64.
        captions: (T,) str.
        t2i_scores: of text-to-image retrieval, float64, (I, T), where ``scores`` are those of
            image-to-text retrieval alone; None where ``scores`` are those of both.
    """

    scores: np.ndarray
    text_to_image: np.ndarray
    image_ids: np.ndarray
    captions: np.ndarray
    t2i_scores: np.ndarray | None = None

    @property
    def gallery(self) -> Gallery:
        """The input of the metrics."""
        scores, text_to_image = torch.from_numpy(self.scores), torch.from_numpy(self.text_to_image)
        t2i_scores = None if self.t2i_scores is None else torch.from_numpy(self.t2i_scores)
        return Gallery(scores, text_to_image, t2i_scores=t2i_scores)


def write_scores(file: str | Path, matrix: ScoreMatrix) -> None:
    """Writes an ``.npz`` file, in the place of that of an earlier validation."""
    with atomic_write(Path(file)) as path, open(path, 'wb') as output:
        np.savez(output, **{k: v for k, v in matrix._asdict().items() if v is not None})


def read_scores(file: str | Path) -> ScoreMatrix:
    """Reads a file of :func:`write_scores`.

    Raises:
        FileNotFoundError: when the file does not exist.
        ValueError: when it has other content.
    """
    layout = 'scores that test_cfg.save_scores wrote'
    with explain_errors(file, layout), ZipFile(file) as archive:
        if any(record.compress_type != ZIP_STORED for record in archive.infolist()):
            raise FileError(f'{file} is compressed, expected {layout}, which are not')
    with explain_errors(file, layout), np.load(file) as content:
        if missing := set(ScoreMatrix._fields) - set(ScoreMatrix._field_defaults) - set(content):
            raise FileError(
                f'{file} has no {sorted(missing)}: it is not a score matrix written by '
                'test_cfg.save_scores'
            )
        try:
            return ScoreMatrix(
                **{name: content[name] for name in ScoreMatrix._fields if name in content}
            )
        except MemoryError as error:  # a header may claim any size
            raise FileError(f'{file} claims more numbers than fit into memory: {error}') from error


def average_scores(files: list[str | Path]) -> ScoreMatrix:
    """The mean of several models' scores of one test set, in float64.

    SGRAF is the mean of the scores of SAF and SGR (Diao et al., AAAI 2021).

    Raises:
        ValueError: when two files do not have the same images and captions in the same order, or
            only one of them was re-ranked.
    """
    first = read_scores(files[0])
    names = [name for name in ('scores', 't2i_scores') if getattr(first, name) is not None]
    totals = {name: getattr(first, name).astype(np.float64) for name in names}
    for file in files[1:]:
        other = read_scores(file)
        require_same_test(files[0], first, file, other)
        for name, total in totals.items():
            total += getattr(other, name)
    return first._replace(**{name: total / len(files) for name, total in totals.items()})


def require_same_test(
    first_file: str | Path, first: ScoreMatrix, file: str | Path, other: ScoreMatrix
) -> None:
    """Raises ValueError where the scores of two files can't be averaged or compared."""
    for name in ('image_ids', 'captions', 'text_to_image'):
        values, expected = getattr(other, name), getattr(first, name)
        if not np.array_equal(values, expected):
            raise ValueError(
                f'{file} and {first_file} are not of the same test set: their {name} differ '
                f'({len(values)} and {len(expected)} values)'
            )
    if (other.t2i_scores is None) != (first.t2i_scores is None):
        raise ValueError(
            f'of {file} and {first_file} only one was re-ranked and has t2i_scores: test both '
            'models with ITMReranker, with topk=0 for both or for none'
        )

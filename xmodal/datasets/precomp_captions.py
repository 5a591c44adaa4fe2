"""Which captions belong to which image in precomputed features."""

import codecs
from pathlib import Path
from typing import NamedTuple

import numpy as np

from xmodal.expansion import require_lines_fit
from xmodal.files import decode_error_message


class CaptionAssignment(NamedTuple):
    """The images among the rows of the features, and the image of each caption.

    Attributes:
        rows: the row of each image, (I,).
        text_to_image: the index of the image of each caption, (captions,).
    """

    rows: np.ndarray
    text_to_image: np.ndarray


def assign_captions(
    features: np.ndarray,
    num_captions: int,
    ids: list[str] | None,
    captions_per_image: int | None,
    prefix: Path,
) -> CaptionAssignment:
    """Finds the images among the rows, and the image of each caption.

    ========================  =================================================================
    given                     interpretation
    ========================  =================================================================
    ``captions_per_image``    so many lines per image; one row per image, or one row per caption
    as many rows as captions  same id, same image; where all ids differ (they may be row numbers)
                              or there are no ids: same features, same image
    as many ids as captions   one row per image, in the order in which their ids first appear
    otherwise                 rows × n = captions: n lines per image
    ========================  =================================================================

    Args:
        features: (rows, R, F).
        num_captions: number of captions.
        ids: one id per row or per caption; None when there is no file of ids.
        captions_per_image: see above.
        prefix: path of the files up to ``_ims.npy``, for messages.

    Raises:
        ValueError: when the counts do not match, or rows with the same id differ.
    """
    num_rows = len(features)
    counts = (
        f'{prefix}_ims.npy has {num_rows} rows and {prefix}_caps.txt has {num_captions} captions'
    )
    if ids is not None and len(ids) not in (num_rows, num_captions):
        raise ValueError(f'{counts}; {prefix}_ids.txt has {len(ids)} ids, expected one of these')
    if captions_per_image is not None:
        return _assign_by_count(num_rows, num_captions, captions_per_image, counts)
    if num_rows == num_captions:
        if ids is None or len(set(ids)) == len(ids):
            return _group([_row_key(row) for row in features])
        assignment = _group(ids)
        _check_repeated_rows(features, assignment, ids, prefix)
        return assignment
    if ids is not None and len(ids) == num_captions:
        first, text_to_image = _group(ids)
        if len(first) != num_rows:
            raise ValueError(
                f'{counts}; {prefix}_ids.txt has {len(first)} different ids, expected {num_rows}'
            )
        return CaptionAssignment(np.arange(num_rows), text_to_image)
    if num_captions % num_rows or not num_captions:
        raise ValueError(
            f'{counts}: expected as many captions as rows, or a multiple. Where images have '
            f'different numbers of captions, {prefix}_ids.txt needs one line per caption with its '
            "image's id"
        )
    per_image = num_captions // num_rows
    return CaptionAssignment(np.arange(num_rows), np.arange(num_captions) // per_image)


def _assign_by_count(
    num_rows: int, num_captions: int, captions_per_image: int, counts: str
) -> CaptionAssignment:
    """A fixed number of lines per image."""
    num_images = num_captions // captions_per_image
    if num_captions % captions_per_image or num_rows not in (num_images, num_captions):
        raise ValueError(
            f'{counts}: with captions_per_image={captions_per_image} expected '
            f'{num_captions / captions_per_image:g} rows, or {num_captions}'
        )
    rows = np.arange(num_images) * (num_rows // num_images)
    return CaptionAssignment(rows, np.arange(num_captions) // captions_per_image)


def _group(keys: list) -> CaptionAssignment:
    """Groups equal keys: the first index of each distinct key, and the group of each key."""
    groups: dict = {}
    group_of = np.array([groups.setdefault(key, len(groups)) for key in keys])
    return CaptionAssignment(np.unique(group_of, return_index=True)[1], group_of)


def _row_key(row: np.ndarray) -> bytes:
    """What distinguishes the row of an image from other rows: its first and last region."""
    return row[[0, -1]].tobytes()


def _check_repeated_rows(
    features: np.ndarray, assignment: CaptionAssignment, ids: list[str], prefix: Path
) -> None:
    """Checks that rows with the same id have the same features."""
    for row, image in enumerate(assignment.text_to_image):
        first = assignment.rows[image]
        if row != first and _row_key(features[row]) != _row_key(features[first]):
            raise ValueError(
                f'{prefix}_ids.txt, lines {first + 1} and {row + 1}: both are {ids[row]}, but rows '
                f'{first} and {row} (from 0) of {prefix}_ims.npy differ; if the features of each '
                'caption are different, set captions_per_image'
            )


def name_images(
    ids: list[str] | None, num_rows: int, assignment: CaptionAssignment, prefix: Path
) -> list[str]:
    """The id of each image, as the file has it; its index where there is no file.

    Raises:
        ValueError: when two images have the same id.
    """
    if ids is None:
        return [str(image) for image in range(len(assignment.rows))]
    lines = assignment.rows
    if len(ids) != num_rows:
        lines = np.unique(assignment.text_to_image, return_index=True)[1]
    first_line: dict[str, int] = {}
    for line in lines:
        first = first_line.setdefault(ids[line], line)
        if first != line:
            raise ValueError(
                f'{prefix}_ids.txt, lines {first + 1} and {line + 1}: both are {ids[line]}, but '
                'they are of two images'
            )
    return [ids[line] for line in lines]


def number_images(names: list[str]) -> np.ndarray:
    """An integer per image: its id where all ids are integers, otherwise its index."""
    if not all(name.isdecimal() and int(name[:20]) < 2**63 for name in names):
        return np.arange(len(names))
    return np.array([int(name) for name in names])


def read_filled_lines(file: Path) -> list[str]:
    """The lines of a UTF-8 file, stripped; none may be empty.

    Raises:
        ValueError: names a line that is empty or not UTF-8.
    """
    content = file.read_bytes()
    require_lines_fit(file, content)
    lines = content.removeprefix(codecs.BOM_UTF8).split(b'\n')
    if not lines[-1].strip():
        lines.pop()
    texts = []
    for line_number, line in enumerate(lines, 1):
        try:
            text = line.decode('utf-8').strip()
        except UnicodeDecodeError as error:
            raise ValueError(
                f'{file}, line {line_number}: not UTF-8, {decode_error_message(error)}'
            ) from error
        if not text:
            raise ValueError(
                f'{file}, line {line_number} is empty: every line belongs to a row, so add a text '
                '(or remove the line and its row from all files)'
            )
        texts.append(text)
    return texts

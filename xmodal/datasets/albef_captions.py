"""Reading ALBEF's annotation format as a whole, for the converters."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.json_stream import stream_objects
from xmodal.files import reads


def read_captions(files: Iterable[Path]) -> dict[str, list[str]]:
    """The captions of each image of all files, by the stem of its file name."""
    captions: dict[str, list[str]] = defaultdict(list)
    for file in files:
        _add_captions(file, captions)
    return captions


@reads('[{"image": "path.jpg", "caption": "text" or ["text", …]}, …]')
def _add_captions(file: Path, captions: dict[str, list[str]]) -> None:
    for item in stream_objects(file):
        captions[Path(item.name('image')).stem] += item.texts('caption', or_one=True)

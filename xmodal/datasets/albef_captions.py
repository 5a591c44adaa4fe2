"""Reading ALBEF's annotation format as a whole, for the converters."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.image_file import image_stem
from xmodal.datasets.json_stream import stream_objects
from xmodal.files import reads


def read_captions(files: Iterable[Path]) -> dict[str, list[str]]:
    """The captions of each image of all files, by its id in a store of regions."""
    captions: dict[str, list[str]] = defaultdict(list)
    for file in files:
        _add_captions(file, captions)
    return captions


@reads('[{"image": "path.jpg", "caption": "text" or ["text", …]}, …]')
def _add_captions(file: Path, captions: dict[str, list[str]]) -> None:
    for item in stream_objects(file):
        captions[image_stem(item.name('image'))] += item.texts('caption', or_one=True)

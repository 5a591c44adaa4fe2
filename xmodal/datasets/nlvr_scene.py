"""The scenes of NLVR: coloured shapes in three boxes, side by side in an image."""

from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from xmodal.datasets.json_stream import at_line, read_json_lines
from xmodal.fields import Fields, as_objects
from xmodal.files import reads

#: The names of the colours in the files, and in statements.
COLORS = {'Yellow': 'yellow', 'Black': 'black', '#0099ff': 'blue'}
SHAPES = ('square', 'triangle', 'circle')
BOX_SIZE = 100  # pixels, height and width
STRIDE = 150  # pixels from one box to the next; 50 of them are grey
IMAGE_SIZE = (400, 100)  # width and height
#: The boxes of the file from left to right, in the image of each order.
ORDERS = tuple(permutations(range(3)))


class Item(NamedTuple):
    """An object; its place and size are in pixels of its box."""

    color: str
    shape: str
    left: int
    top: int
    size: int

    @property
    def right_gap(self) -> int:
        """Pixels from the item to the right wall of its box."""
        return BOX_SIZE - self.left - self.size

    @property
    def bottom_gap(self) -> int:
        """Pixels from the item to the bottom of its box."""
        return BOX_SIZE - self.top - self.size


Box = tuple[Item, ...]


class Scene(NamedTuple):
    """Three boxes in the order of the file; ``identifier`` is presentation-index."""

    identifier: str
    boxes: tuple[Box, ...]

    @property
    def items(self) -> list[Item]:
        """The items of all boxes."""
        return [item for box in self.boxes for item in box]

    @property
    def has_towers(self) -> bool:
        """Whether the boxes are towers, squares above each other; their items go upwards."""
        return len({(item.shape, item.left, item.size) for item in self.items}) == 1


@reads(
    'one per line: {"identifier": "72-0", "structured_rep": [[{"color", "type", "x_loc", "y_loc", '
    '"size"}, …], …, …], …}'
)
def read_scenes(file: Path) -> Iterable[Scene]:
    """The scene of each line of an NLVR file.

    Raises:
        FileError: when a line is no scene, or there is none.
    """
    line_number = None
    for line_number, line in read_json_lines(file):
        with at_line(line_number):
            boxes = line.items('structured_rep')
            if len(boxes) != len(ORDERS[0]) or not all(boxes):
                raise line.error('structured_rep', 'three lists of items')
            yield Scene(line.name('identifier'), tuple(map(_read_box, boxes)))
    if line_number is None:
        raise ValueError('it has no line')


def _read_box(items: object) -> Box:
    """The items of a box, the lowest first."""
    box = [_read_item(item) for item in as_objects(items)]
    return tuple(sorted(box, key=lambda item: -item.top))


def _read_item(item: Fields) -> Item:
    color, shape = COLORS[item.choice('color', COLORS)], item.choice('type', SHAPES)
    place = Item(color, shape, *(item.integer(key, low=0) for key in ('x_loc', 'y_loc', 'size')))
    if min(place.size - 1, place.right_gap, place.bottom_gap) < 0:
        raise item.error('size', f'an item in a box of {BOX_SIZE} × {BOX_SIZE} pixels')
    return place

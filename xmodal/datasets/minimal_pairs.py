"""Readers of minimal pairs: SugarCrepe, ARO, Winoground; and VSR's statements."""

from collections.abc import Iterable
from pathlib import Path

from mmengine.logging import print_log

from xmodal.datasets.aro_relations import UNSCORED_RELATIONS
from xmodal.datasets.json_stream import at_line, read_json_lines, stream_objects
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.text import clean_caption
from xmodal.fields import Fields, read_object
from xmodal.registry import DATASETS


class MinimalPairDataset(RecordDataset):
    """Images with a few texts each, of which one is true.

    A sample has the list of texts, the index of the true one as ``label``, the ``skill`` that tells
    them apart, the ``pair_id``, and the ``group`` of samples that are judged together.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        max_words: texts are cleaned and truncated after so many words; None leaves them unchanged.
        **kwargs: see :class:`RecordDataset`.
    """

    def __init__(self, ann_file: str | list[str], max_words: int | None = 30, **kwargs) -> None:
        self.max_words = max_words
        super().__init__(ann_file, **kwargs)

    def record(
        self, image: str, texts: list[str], label: int, skill: str, pair_id: str, **others: object
    ) -> dict:
        """The record of an annotation; it is a group by itself unless ``group`` is given."""
        return {
            'image': image,
            'text': [clean_caption(text, self.max_words) for text in texts],
            'label': label,
            'skill': skill,
            'pair_id': pair_id,
            'group': pair_id,
            **others,
        }


@DATASETS.register_module()
class SugarCrepeDataset(MinimalPairDataset):
    """SugarCrepe's files, ``{add,replace,swap}_{obj,att,rel}.json``: a skill is a file.

    The embedded world has the same layout.
    """

    layout = '{"0": {"filename": "….jpg", "caption": "…", "negative_caption": "…"}, …}'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item."""
        content = read_object(file)
        for key in content:
            item = content.object(key)
            texts = [item.text('caption'), item.text('negative_caption')]
            pair_id = f'{self.file_names[file]}-{key}'
            yield self.record(item.name('filename'), texts, 0, file.stem, pair_id)


@DATASETS.register_module()
class AroDataset(MinimalPairDataset):
    """ARO's ``visual_genome_relation.json`` and ``visual_genome_attribution.json``.

    A skill is a relation, or a pair of attributes, ``white_blue``. ``box`` is the part of the image
    that the captions are about, which :class:`CropBox` cuts out as ARO does. Relations that ARO's
    authors do not score, such as "next to", are dropped; the log says how many pairs.
    """

    layout = (
        '[{"image_path": "1.jpg", "true_caption": "…", "false_caption": "…", "bbox_x": 0, '
        '"bbox_y": 0, "bbox_w": 9, "bbox_h": 9, "relation_name": "…" or "attributes": ["…", "…"]}, '
        '…]'
    )

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        num_unscored = 0
        for index, item in enumerate(stream_objects(file)):
            if 'attributes' in item:
                attributes = item.texts('attributes')
                if len(attributes) != 2:
                    raise item.error('attributes', 'two attributes')
                skill = '_'.join(attributes)
            else:
                skill = item.name('relation_name')
                if skill in UNSCORED_RELATIONS:
                    num_unscored += 1
                    continue
            texts = [item.text('true_caption'), item.text('false_caption')]
            # Some boxes of Visual Genome begin a little beyond the edge.
            x, y = (item.integer(f'bbox_{side}') for side in 'xy')
            width, height = (item.integer(f'bbox_{side}', low=1) for side in 'wh')
            image, box = item.name('image_path'), [x, y, width, height]
            if x + width <= 0 or y + height <= 0:
                raise ValueError(f'the box of {image} ends before the image begins: {box}')
            pair_id = f'{self.file_names[file]}-{index}'
            yield self.record(image, texts, 0, skill, pair_id, box=box)
        if num_unscored:
            print_log(
                f'{file}: {num_unscored} pairs dropped, of relations that ARO does not score',
                'current',
            )


@DATASETS.register_module()
class AroOrderDataset(MinimalPairDataset):
    """ARO's COCO and Flickr30K Order: a caption, and its words in other orders.

    ARO shuffles captions when it loads them, with a part-of-speech tagger, and publishes no file.
    The annotation file is its list of test cases::

        json.dump(COCO_Order(root_dir=…).test_cases, open('coco_order.json', 'w'))

    An order that reads as the caption itself is left out: no score tells the two apart, and ARO
    counts such a tie as right. A caption without other orders is left out, too. The tagger sets
    punctuation apart ('a man , smiling'), so spaces do not count. The skill is 'order'.
    """

    layout = '[{"image": "….jpg", "caption_options": ["the caption", "another order", …]}, …]'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        num_without = 0
        for index, item in enumerate(stream_objects(file)):
            options = item.texts('caption_options')
            if len(options) < 2:
                raise item.error('caption_options', 'a caption and other orders of its words')
            caption, *orders = map(self._letters, options)
            others = [
                text for text, order in zip(options[1:], orders, strict=True) if order != caption
            ]
            if not others:
                num_without += 1
                continue
            texts, pair_id = [options[0], *others], f'{self.file_names[file]}-{index}'
            yield self.record(item.name('image'), texts, 0, 'order', pair_id)
        if num_without:
            print_log(f'{file}: {num_without} captions without another order dropped', 'current')

    def _letters(self, text: str) -> str:
        return ''.join(clean_caption(text, self.max_words).split())


@DATASETS.register_module()
class WinogroundDataset(MinimalPairDataset):
    """Winoground's ``examples.jsonl``: two images and two captions with the same words.

    An example is two samples, one per image, each with both captions, and their ``group``. The
    skill is the example's ``collapsed_tag``: Object, Relation or Both.

    Args:
        ann_file: annotation file, below ``data_root``.
        image_path: path of an image, with ``{image}``, its name in the file.
        **kwargs: see :class:`MinimalPairDataset`.
    """

    layout = (
        'one per line: {"id": 0, "image_0": "…", "image_1": "…", "caption_0": "…", '
        '"caption_1": "…", "collapsed_tag": "Object", …}'
    )

    def __init__(
        self, ann_file: str | list[str], image_path: str = '{image}.png', **kwargs
    ) -> None:
        self.image_path = image_path
        super().__init__(ann_file, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """Two records per line."""
        for line_number, item in read_json_lines(file):
            with at_line(line_number):
                yield from self._read_example(item)

    def _read_example(self, item: Fields) -> Iterable[dict]:
        texts = [item.text('caption_0'), item.text('caption_1')]
        group, tag = str(item.id('id')), item.text('collapsed_tag', '')
        for side in (0, 1):
            image = self.image_path.format(image=item.name(f'image_{side}'))
            yield self.record(image, texts, side, tag, f'{group}-{side}', group=group)


@DATASETS.register_module()
class VsrDataset(MinimalPairDataset):
    """VSR's ``{train,dev,test}.jsonl``: statements about a place, one per image, true or false.

    A sample has one text, and its ``label`` is 1 where the text is true. The skill is the relation.
    """

    layout = 'one per line: {"image": "….jpg", "caption": "…", "label": 0 or 1, "relation": "…", …}'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per line."""
        for line_number, item in read_json_lines(file):
            with at_line(line_number):
                label = item.integer('label')
                if label not in (0, 1):
                    raise item.error('label', '0 or 1')
                pair_id = f'{self.file_names[file]}-{line_number}'
                texts = [item.text('caption')]
                yield self.record(item.name('image'), texts, label, item.text('relation'), pair_id)

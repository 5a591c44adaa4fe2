"""Readers of visual entailment: SNLI-VE and ALBEF's form of it."""

import random
from collections.abc import Iterable
from pathlib import Path

from mmengine.logging import print_log

from xmodal.datasets.json_stream import at_line, read_json_lines, stream_json_list
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.text import clean_caption
from xmodal.registry import DATASETS

#: A label is a place in this list; the numbers are ALBEF's.
ENTAILMENT_CLASSES = ('contradiction', 'neutral', 'entailment')


class EntailmentDataset(RecordDataset):
    """Images with a hypothesis each, which they entail, contradict or leave open.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        image_path: where the images are below ``data_prefix``, with any field of an annotation, if
            not where the archive of Flickr30K has them: '{Flickr30K_ID}.png'.
        max_words: hypotheses are cut after so many words.
        **others: see :class:`RecordDataset`.
    """

    #: The path of an image in the archive.
    archived = ''

    def __init__(
        self,
        ann_file: str | list[str],
        image_path: str | None = None,
        max_words: int = 30,
        **others,
    ) -> None:
        self.image_path, self.max_words = image_path or self.archived, max_words
        super().__init__(ann_file, **others)

    def describe(self, index: int, chooser: random.Random) -> dict:
        """The image with its hypothesis, the number of its label and the pair's id."""
        record = self.records[index]
        return {
            'img_path': str(self.image_root / record['image']),
            'image_id': derive_seed(record['image']),
            'text': record['text'],
            'label': record['label'],
            'pair_id': record['pair_id'],
            'sample_index': index,
        }

    def record(self, item: dict, hypothesis: str, label: str, pair_id: str) -> dict:
        """What is kept of an annotation; ``item`` names the image."""
        if label not in ENTAILMENT_CLASSES:
            raise ValueError(
                f'the label of {hypothesis!r} is {label!r}, expected one of '
                f'{", ".join(ENTAILMENT_CLASSES)}'
            )
        return {
            'image': self.image_path.format(**item),
            'text': clean_caption(hypothesis, self.max_words),
            'label': ENTAILMENT_CLASSES.index(label),
            'pair_id': pair_id,
        }


@DATASETS.register_module()
class SnliVeDataset(EntailmentDataset):
    """SNLI-VE's own files, ``snli_ve_{train,dev,test}.jsonl``.

    Pairs on whose label the annotators did not agree ('-') are left out, as everywhere; the log
    says how many.
    """

    layout = (
        'a line each: {"Flickr30K_ID": "…", "sentence2": "…", "gold_label": "entailment", …}, '
        "gold_label '-' where there is none"
    )
    archived = '{Flickr30K_ID}.jpg'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a line that has a label."""
        undecided = 0
        for place, (number, item) in enumerate(read_json_lines(file)):
            with at_line(number):
                if item['gold_label'] == '-':
                    undecided += 1
                    continue
                pair_id = item.get('pairID', str(place))
                yield self.record(item, item['sentence2'], item['gold_label'], pair_id)
        if undecided:
            print_log(f'{file}: {undecided} pairs without a label left out', 'current')


@DATASETS.register_module()
class AlbefEntailmentDataset(EntailmentDataset):
    """ALBEF's form, ``ve_{train,dev,test}.json``; images are named without suffix there."""

    layout = '[{"image": "Flickr30K id", "sentence": "…", "label": "entailment"}, …]'
    archived = '{image}.jpg'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the list."""
        for number, item in enumerate(stream_json_list(file)):
            yield self.record(item, item['sentence'], item['label'], str(number))

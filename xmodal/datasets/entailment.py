"""Readers of visual entailment: SNLI-VE and ALBEF's lists of it."""

from collections.abc import Iterable
from pathlib import Path

from mmengine.logging import print_log

from xmodal.datasets.json_stream import at_line, read_json_lines, stream_objects
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.text import clean_caption
from xmodal.fields import Fields
from xmodal.registry import DATASETS

#: A label is an index into this list; the order is ALBEF's.
ENTAILMENT_CLASSES = ('contradiction', 'neutral', 'entailment')


class EntailmentDataset(RecordDataset):
    """Images with one hypothesis each: entailed, contradicted or neither.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        image_path: path of an image below ``data_prefix.image``, with any field of an annotation:
            '{Flickr30K_ID}.png'. None for the paths in the archive of Flickr30K.
        max_words: number of words after which hypotheses are truncated.
        **kwargs: see :class:`RecordDataset`.
    """

    #: The path of an image in the archive of Flickr30K.
    archive_path = ''

    def __init__(
        self,
        ann_file: str | list[str],
        image_path: str | None = None,
        max_words: int = 30,
        **kwargs,
    ) -> None:
        self.image_path, self.max_words = image_path or self.archive_path, max_words
        super().__init__(ann_file, **kwargs)

    def record(self, item: Fields, sentence_key: str, label_key: str, pair_id: str | int) -> dict:
        """The record of an annotation; ``item`` has the fields of ``image_path``, too."""
        return {
            'image': item.format(self.image_path),
            'text': clean_caption(item.text(sentence_key), self.max_words),
            'label': ENTAILMENT_CLASSES.index(item.choice(label_key, ENTAILMENT_CLASSES)),
            'pair_id': pair_id,
        }


@DATASETS.register_module()
class SnliVeDataset(EntailmentDataset):
    """SNLI-VE's files, ``snli_ve_{train,dev,test}.jsonl``.

    Pairs on whose label the annotators did not agree ('-') are dropped, as everywhere; the log says
    how many.
    """

    layout = (
        'one per line: {"Flickr30K_ID": "…", "sentence2": "…", "gold_label": "entailment", …}, '
        "gold_label '-' where the annotators did not agree; for older files, which have "
        "Flikr30kID, set dataset.image_path='{Flikr30kID}'"
    )
    archive_path = '{Flickr30K_ID}.jpg'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per line with a label."""
        num_undecided = 0
        for index, (line_number, item) in enumerate(read_json_lines(file)):
            with at_line(line_number):
                if item.text('gold_label') == '-':
                    num_undecided += 1
                    continue
                pair_id = item.id('pairID', f'{self.file_names[file]}-{index}')
                yield self.record(item, 'sentence2', 'gold_label', pair_id)
        if num_undecided:
            print_log(f'{file}: {num_undecided} pairs without a label dropped', 'current')


@DATASETS.register_module()
class AlbefEntailmentDataset(EntailmentDataset):
    """ALBEF's lists, ``ve_{train,dev,test}.json``; they name images without suffix."""

    layout = '[{"image": "Flickr30K id", "sentence": "…", "label": "entailment"}, …]'
    archive_path = '{image}.jpg'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        for index, item in enumerate(stream_objects(file)):
            yield self.record(item, 'sentence', 'label', f'{self.file_names[file]}-{index}')

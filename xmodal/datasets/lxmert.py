"""Readers of the files that LXMERT publishes: pre-training, VQA and GQA, NLVR2.

Images are named by the id of their regions; a pipeline begins with ``LoadRegions``.
"""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from xmodal.datasets.answers import normalize_lxmert_answer
from xmodal.datasets.base import SampleDataset, find_files
from xmodal.datasets.index import Entry, open_index
from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.reasoning import REASONING_CLASSES, ReasoningDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.text import clean_caption
from xmodal.datasets.vqa import QuestionDataset
from xmodal.files import explain_errors
from xmodal.registry import DATASETS


@DATASETS.register_module()
class LxmertPretrainDataset(SampleDataset):
    """Sentences about images, ``mscoco_train.json``, ``vgnococo.json`` and their like.

    A sample is one image with one sentence: a caption, or a question with its ``answers`` and their
    scores as ``answer_weights``. Answers are written as in LXMERT's joint table. A caption has
    none, nor has a question whose label is empty, which is legal. All sentences lie in one
    memory-mapped index (:func:`xmodal.datasets.index.open_index`).

    Args:
        ann_file: file or files, below ``data_root``.
        data_root: folder that paths are relative to.
        max_words: sentences are cleaned and cut after so many words; None, as LXMERT, leaves them
            as they are.
        pipeline: transforms, ``LoadRegions`` and ``PackRegionText``.
        test_mode: nothing random, and missing regions are an error.
        seed: of all random choices.

    Raises:
        FileNotFoundError: when a file is not there, or none of the images has regions,
            in test mode not all.
        ValueError: when a file is not of the format.
    """

    layout = (
        '[{"img_id", "sentf": {"set": ["…", …], …}, "labelf": {"set": [{"answer": score}, …]}}, …] '
        'with a label for each sentence of the sets that "labelf" names'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        data_root: str = '',
        max_words: int | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(pipeline, test_mode, seed)
        self.max_words = max_words
        files = find_files(self, ann_file, data_root)
        self.index = open_index(files, {'reader': type(self).__name__}, self._read)
        images = [Path(image) for image in self.sampled(self.index.images, 1000)]
        self.check_images(images, files[0])

    def __len__(self) -> int:
        return len(self.index.texts)

    def describe(self, index: int, chooser: random.Random) -> dict:
        """An image with a sentence; ``source`` is the set that it is of."""
        image = self.index.owner(index)
        source, text, label = json.loads(self.index.texts[index])
        return {
            'img_path': self.index.images[image],
            'image_id': int(self.index.image_ids[image]),
            'text': clean_caption(text, self.max_words),
            'sample_index': index,
            'source': source,
            'answers': list(label),
            'answer_weights': list(label.values()),
        }

    def _read(self, file: Path) -> Iterable[Entry]:
        """An entry an image; a sentence is the JSON text of set, text and label."""
        done = 0
        reader = type(self).__name__
        with explain_errors(file, self.layout, lambda: f' by {reader} after {done} images'):
            for item in stream_json_list(file):
                entry = Entry(item['img_id'], [json.dumps(found) for found in _sentences(item)])
                entry.check()
                yield entry
                done += 1


def _sentences(item: dict) -> Iterable[tuple[str, str, dict[str, float]]]:
    """Set, text and scores by answer of each sentence of an image."""
    labels = item.get('labelf', {})
    for source, texts in item['sentf'].items():
        own = labels.get(source, [{}] * len(texts))
        if len(own) != len(texts):
            raise ValueError(
                f'image {item["img_id"]} has {len(texts)} sentences of {source!r} and {len(own)} '
                'labels'
            )
        for text, label in zip(texts, own, strict=True):
            if not isinstance(text, str):
                raise ValueError(f'a sentence of {item["img_id"]} is {text!r}, expected a text')
            yield source, text, normalize_label(label)


def normalize_label(label: dict[str, float]) -> dict[str, float]:
    """A label with answers as LXMERT's table has them; of equal ones the greatest score counts."""
    found: dict[str, float] = {}
    for answer, score in label.items():
        answer = normalize_lxmert_answer(answer)
        if answer:
            found[answer] = max(score, found.get(answer, 0.0))
    return found


@DATASETS.register_module()
class LxmertQuestionDataset(QuestionDataset):
    """LXMERT's ``data/vqa`` and ``data/gqa``: ``train.json``, ``nominival.json``, ….

    ``answers`` and ``answer_weights`` are the file's label, of which training learns and by which
    ``SoftAnswerMetric`` scores. There are no human answers, and a label may be empty: no answer
    counts as right then.

    Args:
        ann_file: file or files, below ``data_root``.
        **others: see :class:`QuestionDataset`.
    """

    layout = (
        '[{"question_id", "img_id", "sent", "label": {"answer": score} (not in tests), '
        '"answer_type": optional}, …]'
    )

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the list."""
        for item in stream_json_list(file):
            yield self.record(
                image=item['img_id'],
                image_id=derive_seed(item['img_id']),
                question=item['sent'],
                question_id=item['question_id'],
                answer_type=item.get('answer_type', ''),
                target=item.get('label', {} if self.test_mode else None),
            )


@DATASETS.register_module()
class LxmertReasoningDataset(ReasoningDataset):
    """LXMERT's ``data/nlvr2``: ``train.json``, ``valid.json``, ``test.json``."""

    layout = '[{"identifier": "train-10171-0-0", "img0", "img1", "sent", "label": 0 or 1}, …]'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the list."""
        for item in stream_json_list(file):
            label = item['label']
            if label not in (0, 1):
                raise ValueError(f'the label of {item["identifier"]} is {label!r}, expected 0 or 1')
            split, image_set, _, sentence = item['identifier'].split('-')
            yield self.record(
                [item['img0'], item['img1']],
                item['sent'],
                REASONING_CLASSES[label],
                item['identifier'],
                group=f'{split}-{image_set}-{sentence}',
            )

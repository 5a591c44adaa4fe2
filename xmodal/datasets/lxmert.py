"""Readers of LXMERT's published files: pre-training, VQA and GQA, NLVR2.

The files name images by the id of their regions; a pipeline begins with ``LoadRegions``.
"""

import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from xmodal.datasets.answers import normalize_lxmert_answer
from xmodal.datasets.base import ImageFolder, SampleDataset, find_files
from xmodal.datasets.index import Entry, open_index
from xmodal.datasets.json_stream import stream_objects
from xmodal.datasets.questions import QuestionDataset
from xmodal.datasets.reasoning import ReasoningDataset, split_identifier
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.text import clean_caption
from xmodal.fields import Fields
from xmodal.files import read_explained
from xmodal.registry import DATASETS


@DATASETS.register_module()
class LxmertPretrainDataset(SampleDataset):
    """Sentences about images, ``mscoco_train.json``, ``vgnococo.json`` and similar files.

    A sample is one image with one sentence: a caption, or a question with its ``answers`` and their
    scores as ``answer_weights``. Answers are written as in LXMERT's joint table. A caption has no
    answers; a question may have an empty label, and no answers then. All sentences are in one
    memory-mapped index (:func:`xmodal.datasets.index.open_index`).

    Args:
        ann_file: file or files, below ``data_root``.
        data_root: folder that paths are relative to.
        max_words: sentences are cleaned and truncated after so many words; None leaves them
            unchanged, as LXMERT.
        pipeline: transforms, ``LoadRegions`` and ``PackRegionText``.
        test_mode: whether nothing is random and missing regions are an error.
        seed: seed of all random choices; None for that of the run.

    Raises:
        FileNotFoundError: when a file does not exist, or none of the images has regions; in test
            mode when one image has none.
        ValueError: when a file has another layout.
    """

    layout = (
        '[{"img_id", "sentf": {"set": ["…", …], …}, "labelf": {"set": [{"answer": score}, …]}}, …] '
        'with one label per sentence for each set that "labelf" names'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        data_root: str = '',
        max_words: int | None = None,
        pipeline: list[dict | Callable] = (),
        test_mode: bool = False,
        seed: int | None = None,
    ) -> None:
        super().__init__(pipeline, test_mode, seed)
        self.max_words = max_words
        files = find_files(self, ann_file, data_root)
        self.index = open_index(files, {'reader': type(self).__name__}, self._read_file)
        images = self.items_to_check(self.index.images, 1000)
        self.check_images(images, files[0], ImageFolder('', None))

    def image_paths(self) -> Iterable[str]:
        """The ids of the images of the index."""
        return self.index.images

    def __len__(self) -> int:
        return len(self.index.texts)

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """An image with a sentence; ``source`` is the dataset that the sentence comes from."""
        image = self.index.image_of(index)
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

    def _read_file(self, file: Path) -> Iterable[Entry]:
        """One entry per image; a sentence is the JSON text of its source, text and label."""

        def read() -> Iterable[Entry]:
            return map(_read_entry, stream_objects(file))

        return read_explained(read, file, self.layout, type(self).__name__, 'images')


def _read_entry(item: Fields) -> Entry:
    sentences = [json.dumps(sentence) for sentence in _read_sentences(item)]
    entry = Entry(item.name('img_id'), sentences)
    entry.check()
    return entry


def _read_sentences(item: Fields) -> Iterable[tuple[str, str, dict[str, float]]]:
    """Source, text and scores by answer of each sentence of an image."""
    sentences, all_labels = item.object('sentf'), item.object('labelf', {})
    if unknown := set(all_labels) - set(sentences):
        raise item.error('labelf', f'labels of sentences in "sentf", which has no {unknown}')
    for source in sentences:
        texts = sentences.texts(source)
        labels = [label.scores() for label in all_labels.objects(source, [{}] * len(texts))]
        if len(labels) != len(texts):
            raise ValueError(
                f'image {item.name("img_id")} has {len(texts)} sentences of {source!r} and '
                f'{len(labels)} labels'
            )
        for text, label in zip(texts, labels, strict=True):
            yield source, text, normalize_label(label)


def normalize_label(label: dict[str, float]) -> dict[str, float]:
    """A label with answers in the form of LXMERT's table; equal answers get the largest score."""
    normalized: dict[str, float] = {}
    for answer, score in label.items():
        answer = normalize_lxmert_answer(answer)
        if answer:
            normalized[answer] = max(score, normalized.get(answer, 0.0))
    return normalized


@DATASETS.register_module()
class LxmertQuestionDataset(QuestionDataset):
    """LXMERT's ``data/vqa`` and ``data/gqa``: ``train.json``, ``nominival.json``, ….

    ``answers`` and ``answer_weights`` are the label in the file, which is the training target and
    the reference of ``SoftAnswerMetric``. There are no human answers, and a label may be empty:
    then no answer is correct.

    Args:
        ann_file: file or files, below ``data_root``.
        **kwargs: see :class:`QuestionDataset`.
    """

    layout = (
        '[{"question_id", "img_id", "sent", "label": {"answer": score} (not in tests), '
        '"answer_type" and "question_type": optional}, …]'
    )

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        for item in stream_objects(file):
            has_label = self.test_mode or 'label' in item
            yield self.record(
                image=item.name('img_id'),
                image_id=derive_seed(item.name('img_id')),
                question=item.text('sent'),
                question_id=item.id('question_id'),
                answer_type=item.text('answer_type', ''),
                question_type=item.text('question_type', ''),
                target=item.object('label', {}).scores() if has_label else None,
            )


@DATASETS.register_module()
class LxmertReasoningDataset(ReasoningDataset):
    """LXMERT's ``data/nlvr2``: ``train.json``, ``valid.json``, ``test.json``."""

    layout = '[{"identifier": "train-10171-0-0", "img0", "img1", "sent", "label": 0 or 1}, …]'

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        for item in stream_objects(file):
            if item.integer('label') not in (0, 1):
                raise item.error('label', '0 or 1')
            split, image_set, _, sentence = split_identifier(item)
            yield self.record(
                [item.name('img0'), item.name('img1')],
                item.text('sent'),
                item.integer('label'),
                item.text('identifier'),
                group=f'{split}-{image_set}-{sentence}',
            )

"""Readers of visual question answering: VQA v2, Visual Genome's questions, and ALBEF's form."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from mmengine.logging import print_log

from xmodal.datasets.answers import normalize_answer
from xmodal.datasets.base import find_files
from xmodal.datasets.coco import image_names
from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.text import clean_caption
from xmodal.files import explain_errors, read_json
from xmodal.registry import DATASETS

VISUAL_GENOME_WEIGHT = 0.5  # of an answer that one person alone gave, as ALBEF


class QuestionDataset(RecordDataset):
    """Questions about images, with the answers people gave.

    A sample has the distinct ``answers`` with ``answer_weights``, what a model learns from: the
    share of the people who gave each, or the score that each would get. ``human_answers`` are all
    that people said, what a metric compares with; there are none in a test set without annotations.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        max_words: questions are cleaned and cut after so many words; None leaves them as they are.
        weights: ``share`` of the people (ALBEF), or ``score`` by VQA's accuracy (LXMERT: 0.3, 0.6,
            0.9, 1 for one to four and more of ten), answers in the form that it compares.
        answer_list: JSON file with the list of answers that a model knows, below ``data_root``. In
            training a question keeps none but these, and one that has none of them is left out; the
            log says how many. None keeps all.
        **others: see :class:`RecordDataset`.

    Raises:
        ValueError: in training, when a question has no answer; when two have the same id.
    """

    def __init__(
        self,
        ann_file: str | list[str],
        max_words: int | None = 50,
        weights: str = 'share',
        answer_list: str | None = None,
        data_root: str = '',
        **others,
    ) -> None:
        if weights not in ('share', 'score'):
            raise ValueError(f"dataset.weights={weights!r}, expected 'share' or 'score'")
        self.max_words, self.weights = max_words, weights
        self._known: set[str] | None = None
        if answer_list:
            (file,) = find_files(self, answer_list, data_root)
            with explain_errors(file, '["answer", …]'):
                answers = read_json(file)
                if not isinstance(answers, list):
                    raise ValueError(f'it is {str(answers)[:40]}, not a list')
                self._known = set(answers)
        self._question_ids: set[int | str] = set()
        super().__init__(ann_file, data_root=data_root, **others)
        del self._question_ids, self._known

    def describe(self, index: int, chooser: random.Random) -> dict:
        """The image with its question and what was answered."""
        record = self.records[index]
        return {
            'img_path': str(self.image_root / record['image']),
            'image_id': record['image_id'],
            'text': record['text'],
            'sample_index': index,
            'question_id': record['question_id'],
            'answers': list(record['target']),
            'answer_weights': list(record['target'].values()),
            'human_answers': record['answers'],
            'answer_type': record['answer_type'],
        }

    def record(
        self,
        image: str,
        image_id: int,
        question: str,
        question_id: int | str,
        answers: Sequence[str] = (),
        answer_type: str = '',
        weight: float = 1.0,
        target: dict[str, float] | None = None,
    ) -> dict:
        """What is kept of a question.

        Args:
            image, image_id, question, question_id: the question.
            answers: those of people.
            answer_type: what accuracies are apart by.
            weight: sum of the shares of its answers.
            target: answers with weights, where a file has these instead of people's.
        """
        if question_id in self._question_ids:
            raise ValueError(f'question_id {question_id} is there twice')
        self._question_ids.add(question_id)
        if not answers and target is None and not self.test_mode:
            raise ValueError(
                f'question {question_id} has no answer, and training needs one: name the '
                'annotations too, or set test_mode=True'
            )
        return {
            'image': image,
            'image_id': image_id,
            'text': clean_caption(question, self.max_words),
            'question_id': question_id,
            'answers': list(answers),
            'answer_type': answer_type,
            'target': self._target(answers, weight) if target is None else target,
        }

    def _target(self, answers: Sequence[str], weight: float) -> dict[str, float]:
        """What a model learns from: weights by answer."""
        if self.weights == 'score':
            counts = Counter(normalize_answer(answer) for answer in answers)
            return {answer: answer_score(n, len(answers)) for answer, n in counts.items()}
        counts = Counter(answers)
        return {answer: weight * n / len(answers) for answer, n in counts.items()}

    def _read(self, file: Path) -> Iterable[dict]:
        """Records, in training those with an answer that is known."""
        if self.test_mode or self._known is None:
            yield from super()._read(file)
            return
        kept = done = 0
        for record in super()._read(file):
            done += 1
            target = {a: weight for a, weight in record['target'].items() if a in self._known}
            if target:
                kept += 1
                yield {**record, 'target': target}
        print_log(
            f'{file}: {done - kept} of {done} questions left out, which have no answer of '
            'dataset.answer_list',
            'current',
        )


def answer_score(count: int, people: int) -> float:
    """The score by VQA's accuracy of an answer that ``count`` of ``people`` gave.

    As :func:`xmodal.evaluation.vqa_accuracy`: each in turn is left out, and the mean of
    min(1, n / 3) counts. One person's answer scores 1.
    """
    if people == 1:
        return float(count)
    own, other = (min(1.0, n / 3) for n in (count - 1, count))
    return (count * own + (people - count) * other) / people


@DATASETS.register_module()
class VqaDataset(QuestionDataset):
    """VQA v2's own files, ``v2_OpenEnded_mscoco_train2014_questions.json`` and its like.

    Args:
        ann_file: file or files of questions, below ``data_root``.
        answer_file: the annotations of each, in the same order; None for a test set without.
        data_root: folder that paths are relative to.
        image_name: path of an image below ``data_prefix.image``, out of its ``image_id`` and the
            questions' ``data_subtype``, 'train2014'; the default is COCO's.
        image_info: file or files in COCO's format that name the images instead.
        **others: see :class:`QuestionDataset`.

    Raises:
        ValueError: when a question has no annotation or an annotation no question, or an image has
            no name.
    """

    layout = (
        '{"questions": [{"image_id", "question", "question_id"}, …], "data_subtype"} and '
        '{"annotations": [{"question_id", "answers": [{"answer"}, …], "answer_type"}, …]}'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        answer_file: str | list[str] | None = None,
        data_root: str = '',
        image_name: str = '{subtype}/COCO_{subtype}_{image_id:012d}.jpg',
        image_info: str | list[str] | None = None,
        **others,
    ) -> None:
        questions = find_files(self, ann_file, data_root)
        answers: Sequence[Path | None] = [None] * len(questions)
        if answer_file:
            answers = find_files(self, answer_file, data_root)
        if len(answers) != len(questions):
            raise ValueError(
                f'dataset.answer_file names {len(answers)} files and dataset.ann_file '
                f'{len(questions)}: each file of questions needs its own annotations'
            )
        self._answer_files = dict(zip(questions, answers, strict=True))
        self.image_name, self._image_files = image_name, None
        if image_info:
            self._image_files = {}
            for file in find_files(self, image_info, data_root):
                with explain_errors(file, '{"images": [{"id", "file_name"}, …]}'):
                    self._image_files |= image_names(read_json(file)['images'])
        super().__init__(ann_file, data_root=data_root, **others)
        del self._image_files, self._answer_files

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a question."""
        content = read_json(file)
        # The images of test-dev are those of test.
        subtype = content.get('data_subtype', '').replace('test-dev', 'test')
        answer_file = self._answer_files[file]
        annotations = _read_annotations(answer_file) if answer_file else None
        for item in content['questions']:
            number = item['question_id']
            if annotations is not None and number not in annotations:
                raise ValueError(f'{answer_file} has no annotation of question {number}')
            annotation = annotations[number] if annotations else {}
            yield self.record(
                image=self._image(item['image_id'], subtype),
                image_id=item['image_id'],
                question=item['question'],
                question_id=number,
                answers=[given['answer'] for given in annotation.get('answers', ())],
                answer_type=annotation.get('answer_type', ''),
            )
        extra = sorted((annotations or {}).keys() - self._question_ids)
        if extra:
            raise ValueError(
                f'{answer_file} annotates {len(extra)} questions that are not there, for instance '
                f'{extra[0]}: do both files belong to the same split?'
            )

    def _image(self, image_id: int, subtype: str) -> str:
        if self._image_files is None:
            return self.image_name.format(subtype=subtype, image_id=image_id)
        if image_id not in self._image_files:
            raise ValueError(f'dataset.image_info does not name the image {image_id}')
        return self._image_files[image_id]


def _read_annotations(file: Path) -> dict[int, dict]:
    """Annotations by question, with what is the same for all in the errors.

    Raises:
        FileError: when one has no answer or two are of the same question.
    """
    annotations: dict[int, dict] = {}
    with explain_errors(file, '{"annotations": [{"question_id", "answers": [{"answer"}, …]}, …]}'):
        for item in read_json(file)['annotations']:
            number = item['question_id']
            if not item['answers']:
                raise ValueError(f'the annotation of question {number} has no answers')
            if number in annotations:
                raise ValueError(f'question {number} has two annotations')
            annotations[number] = item
    return annotations


@DATASETS.register_module()
class VisualGenomeQuestionDataset(QuestionDataset):
    """Visual Genome's ``question_answers.json``, brought to VQA's way of answering.

    Answers are sentences there ("A teddy bear."), one a question: they are written as VQA's
    evaluation writes answers ("teddy bear"), and weigh half as much as ten people's.

    Args:
        ann_file: file or files, below ``data_root``.
        image_data: Visual Genome's ``image_data.json``, below ``data_root``: says in which of the
            two archives, ``VG_100K`` and ``VG_100K_2``, an image is; None where all are in one.
        data_root: folder that paths are relative to.
        **others: see :class:`QuestionDataset`.
    """

    layout = '[{"qas": [{"image_id", "question", "answer", "qa_id"}, …]}, …]'

    def __init__(
        self,
        ann_file: str | list[str],
        image_data: str | None = None,
        data_root: str = '',
        **others,
    ) -> None:
        self._folders = None
        if image_data:
            (file,) = find_files(self, image_data, data_root)
            with explain_errors(file, '[{"image_id", "url": "https://…/VG_100K/1.jpg"}, …]'):
                self._folders = {
                    image['image_id']: image['url'].split('/')[-2] for image in read_json(file)
                }
        super().__init__(ann_file, data_root=data_root, **others)
        del self._folders

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a question whose answer has a word left."""
        for image in stream_json_list(file):
            for item in image['qas']:
                answer = normalize_answer(item['answer'])
                if not answer:
                    continue
                number = item['image_id']
                folder = self._folders[number] if self._folders else ''
                yield self.record(
                    image=str(Path(folder, f'{number}.jpg')),
                    image_id=number,
                    question=item['question'],
                    question_id=item['qa_id'],
                    answers=[answer],
                    weight=VISUAL_GENOME_WEIGHT,
                )


@DATASETS.register_module()
class AlbefVqaDataset(QuestionDataset):
    """ALBEF's form, ``vqa_{train,val,test}.json`` and ``vg_qa.json``.

    Args:
        ann_file: file or files, below ``data_root``.
        data_prefix: ``image``: folder of the images, below ``data_root``; ``vqa`` and ``vg``:
            folders of the images of either ``dataset``, below that.
        **others: see :class:`QuestionDataset`.
    """

    layout = (
        '[{"image", "question", "answer": ["…", …] or "…" (not in tests), "dataset": "vqa" or '
        '"vg", "question_id" (in tests)}, …]'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        data_prefix: dict[str, str] | None = None,
        **others,
    ) -> None:
        prefix = dict(data_prefix or {})
        self._folders = {name: prefix.pop(name, '') for name in ('vqa', 'vg')}
        super().__init__(ann_file, data_prefix=prefix, **others)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record an item of the list."""
        for place, item in enumerate(stream_json_list(file)):
            source = item['dataset']
            if source not in self._folders:
                raise ValueError(f"dataset={source!r}, expected 'vqa' or 'vg'")
            answers = item.get('answer', [])
            # Only a prediction needs to say whose it is; negative numbers are nobody's.
            made_up = -1 - derive_seed(file.name, place)
            yield self.record(
                image=str(Path(self._folders[source], item['image'])),
                image_id=derive_seed(item['image']),
                question=item['question'],
                question_id=item['question_id'] if self.test_mode else made_up,
                answers=[answers] if isinstance(answers, str) else answers,
                weight=VISUAL_GENOME_WEIGHT if source == 'vg' else 1.0,
            )

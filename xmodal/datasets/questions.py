"""The base class of visual question answering datasets."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from mmengine.logging import print_log

from xmodal.datasets.answers import answer_scores, read_answer_list
from xmodal.datasets.base import find_files
from xmodal.datasets.records import RecordDataset
from xmodal.datasets.text import clean_caption
from xmodal.files import explain_errors

VISUAL_GENOME_WEIGHT = 0.5  # of an answer that only one person gave, as in ALBEF


class QuestionDataset(RecordDataset):
    """Questions about images, with the answers that people gave.

    A sample has the distinct ``answers`` with ``answer_weights``, the training targets: the share
    of the people who gave each answer, or the score that each answer would get. ``human_answers``
    are all answers that people gave, which a metric compares with; a test set without annotations
    has none.

    Args:
        ann_file: annotation file or files, below ``data_root``.
        max_words: questions are cleaned and truncated after so many words; None leaves them
            unchanged.
        weights: ``share`` of the people (ALBEF), or ``score`` by VQA's accuracy (LXMERT: 0.3, 0.6,
            0.9, 1 for one to four and more of ten), with answers as VQA's evaluation writes them.
        answer_list: JSON file with the list of answers that a model knows, below ``data_root``. In
            training a question keeps only these answers; questions without any of them are
            dropped, and the log says how many. None keeps all.
        data_root: folder that paths are relative to.
        **kwargs: see :class:`RecordDataset`.

    Raises:
        ValueError: when a question has no answer in training, or two questions have the same id.
    """

    def __init__(
        self,
        ann_file: str | list[str],
        max_words: int | None = 50,
        weights: str = 'share',
        answer_list: str | None = None,
        data_root: str = '',
        **kwargs,
    ) -> None:
        if weights not in ('share', 'score'):
            raise ValueError(f"dataset.weights={weights!r}, expected 'share' or 'score'")
        self.max_words, self.weights = max_words, weights
        self.answer_list = answer_list and find_files(self, answer_list, data_root)[0]
        super().__init__(ann_file, data_root=data_root, **kwargs)

    def get_data_info(self, index: int, rng: random.Random) -> dict:
        """The image with its question and answers."""
        info = super().get_data_info(index, rng)
        target, human_answers = info.pop('target'), info.pop('answers')
        return {
            **info,
            'answers': list(target),
            'answer_weights': list(target.values()),
            'human_answers': human_answers,
        }

    def record(
        self,
        image: str,
        image_id: int,
        question: str,
        question_id: int | str,
        answers: Sequence[str] = (),
        answer_type: str = '',
        question_type: str = '',
        weight: float = 1.0,
        target: dict[str, float] | None = None,
    ) -> dict:
        """The record of a question.

        Args:
            image, image_id, question, question_id: the question.
            answers: the answers that people gave.
            answer_type: type of answer, by which accuracies are reported.
            question_type: type of question, which its words tell; '' where it is unknown.
            weight: sum of the weights of the answers.
            target: answers with weights, for files that have them in place of people's answers.
        """
        if not answers and target is None and not self.test_mode:
            raise ValueError(
                f'question {question_id} has no answer, and training needs one: name the '
                'annotations too (answer_file of VqaDataset), or set test_mode=True'
            )
        return {
            'image': image,
            'image_id': image_id,
            'text': clean_caption(question, self.max_words),
            'question_id': question_id,
            'answers': list(answers),
            'answer_type': answer_type,
            'question_type': question_type,
            'target': self._target(answers, weight) if target is None else target,
        }

    def _target(self, answers: Sequence[str], weight: float) -> dict[str, float]:
        """The training target: weights by answer."""
        if self.weights == 'score':
            return answer_scores(answers)
        counts = Counter(answers)
        return {answer: weight * n / len(answers) for answer, n in counts.items()}

    def read_files(self, files: list[Path], **tables) -> Iterator[dict]:
        """Yields records with unique ids; in training only those with a known answer."""
        known, question_ids = set(), set()
        if self.answer_list:
            known = set(read_answer_list(self.answer_list, 'dataset.answer_list'))
        is_filtered = known and not self.test_mode
        for file in files:
            num_read = num_dropped = 0
            for record in super().read_files([file], **tables):
                num_read += 1
                if (question_id := record['question_id']) in question_ids:
                    with explain_errors(file, self.layout):
                        raise ValueError(f'question_id {question_id} occurs twice')
                question_ids.add(question_id)
                if is_filtered:
                    target = {a: weight for a, weight in record['target'].items() if a in known}
                    if not target:
                        num_dropped += 1
                        continue
                    record = {**record, 'target': target}
                yield record
            if is_filtered:
                print_log(
                    f'{file}: {num_dropped} of {num_read} questions dropped, which have no answer '
                    'of dataset.answer_list',
                    'current',
                )

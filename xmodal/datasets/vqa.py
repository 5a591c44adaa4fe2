"""Readers of VQA v2: its own files, and ALBEF's lists."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from xmodal.datasets.base import find_files
from xmodal.datasets.coco import image_names
from xmodal.datasets.json_stream import stream_objects
from xmodal.datasets.questions import VISUAL_GENOME_WEIGHT, QuestionDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.fields import read_object
from xmodal.files import explain_errors, reads
from xmodal.registry import DATASETS


@DATASETS.register_module()
class VqaDataset(QuestionDataset):
    """VQA v2's files, ``v2_OpenEnded_mscoco_train2014_questions.json`` and similar files.

    Args:
        ann_file: file or files of questions, below ``data_root``.
        answer_file: the annotations of each file, in the same order; None for a test set without
            annotations.
        data_root: folder that paths are relative to.
        image_name: path of an image below ``data_prefix.image``, from its ``image_id`` and the
            questions' ``data_subtype``, 'train2014'; the default is COCO's.
        image_info: file or files in COCO's format that name the images instead.
        **kwargs: see :class:`QuestionDataset`.

    Raises:
        ValueError: when a question has no annotation, an annotation has no question, or an image
            has no name.
    """

    layout = (
        '{"questions": [{"image_id", "question", "question_id"}, …], "data_subtype"} and '
        '{"annotations": [{"question_id", "answers": [{"answer"}, …], "answer_type", '
        '"question_type"}, …]}'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        answer_file: str | list[str] | None = None,
        data_root: str = '',
        image_name: str = '{subtype}/COCO_{subtype}_{image_id:012d}.jpg',
        image_info: str | list[str] | None = None,
        **kwargs,
    ) -> None:
        question_files = find_files(self, ann_file, data_root)
        answer_files: Sequence[Path | None] = [None] * len(question_files)
        if answer_file:
            answer_files = find_files(self, answer_file, data_root)
        if len(answer_files) != len(question_files):
            raise ValueError(
                f'dataset.answer_file names {len(answer_files)} files and dataset.ann_file '
                f'{len(question_files)}: expected one file of annotations per file of questions'
            )
        self.answer_files = dict(zip(question_files, answer_files, strict=True))
        self.image_name = image_name
        self.image_info = find_files(self, image_info, data_root) if image_info else None
        super().__init__(ann_file, data_root=data_root, **kwargs)

    def read_tables(self) -> dict:
        """``names``: file names by image id, from ``image_info``; None without it."""
        if self.image_info is None:
            return {'names': None}
        names: dict[int, str] = {}
        for file in self.image_info:
            with explain_errors(file, '{"images": [{"id", "file_name"}, …]}'):
                names |= image_names(read_object(file).objects('images'))
        return {'names': names}

    def read_records(self, file: Path, names: dict[int, str] | None) -> Iterable[dict]:
        """One record per question."""
        content = read_object(file)
        questions = list(content.objects('questions'))
        # The images of test-dev are those of test.
        subtype = content.text('data_subtype', '').replace('test-dev', 'test')
        answer_file = self.answer_files[file]
        annotations = read_annotations(answer_file) if answer_file else None
        for item in questions:
            question_id = item.id('question_id')
            if annotations is not None and question_id not in annotations:
                raise ValueError(f'{answer_file} has no annotation of question {question_id}')
            annotation = annotations[question_id] if annotations else Annotation()
            image_id = item.integer('image_id')
            yield self.record(
                image=self._image_path(image_id, subtype, names),
                image_id=image_id,
                question=item.text('question'),
                question_id=question_id,
                **annotation._asdict(),
            )
        extra = (annotations or {}).keys() - {item.id('question_id') for item in questions}
        if extra:
            raise ValueError(
                f'{answer_file} annotates {len(extra)} questions that the file of questions does '
                f'not have, for instance {min(extra, key=str)}: do both files belong to the same '
                'split?'
            )

    def _image_path(self, image_id: int, subtype: str, names: dict[int, str] | None) -> str:
        if names is None:
            return self.image_name.format(subtype=subtype, image_id=image_id)
        if image_id not in names:
            files = ', '.join(map(str, self.image_info))
            raise ValueError(f'{files} (dataset.image_info) does not name the image {image_id}')
        return names[image_id]


class Annotation(NamedTuple):
    """The answers to a question with their type, and the type of the question."""

    answers: Sequence[str] = ()
    answer_type: str = ''
    question_type: str = ''


@reads('{"annotations": [{"question_id", "answers": [{"answer"}, …]}, …]}')
def read_annotations(file: Path) -> dict[int | str, Annotation]:
    """The annotations in VQA v2's format, by question id.

    Raises:
        FileError: when an annotation has no answer, or a question has two annotations.
    """
    annotations: dict[int | str, Annotation] = {}
    for item in read_object(file).objects('annotations'):
        question_id = item.id('question_id')
        answers = [answer.text('answer') for answer in item.objects('answers')]
        if not answers:
            raise ValueError(f'the annotation of question {question_id} has no answers')
        if question_id in annotations:
            raise ValueError(f'question {question_id} has two annotations')
        types = (item.text(f'{kind}_type', '') for kind in ('answer', 'question'))
        annotations[question_id] = Annotation(answers, *types)
    return annotations


@DATASETS.register_module()
class AlbefVqaDataset(QuestionDataset):
    """ALBEF's lists, ``vqa_{train,val,test}.json`` and ``vg_qa.json``.

    Args:
        ann_file: file or files, below ``data_root``.
        data_prefix: ``image``: folder of the images, below ``data_root``; ``vqa`` and ``vg``:
            folders of the images of each ``dataset``, below that folder.
        **kwargs: see :class:`QuestionDataset`.
    """

    layout = (
        '[{"image", "question", "answer": ["…", …] or "…" (not in tests), "dataset": "vqa" or '
        '"vg", "question_id" (in tests)}, …]'
    )

    def __init__(
        self,
        ann_file: str | list[str],
        data_prefix: dict[str, str] | None = None,
        **kwargs,
    ) -> None:
        prefix = dict(data_prefix or {})
        self.folders = {name: prefix.pop(name, '') for name in ('vqa', 'vg')}
        super().__init__(ann_file, data_prefix=prefix, **kwargs)

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record per item of the list."""
        for index, item in enumerate(stream_objects(file)):
            source, image = item.choice('dataset', self.folders), item.name('image')
            # Only predictions need the real id; a negative number is no question's id.
            made_up_id = -1 - derive_seed(self.file_names[file], index)
            yield self.record(
                image=str(Path(self.folders[source], image)),
                image_id=derive_seed(image),
                question=item.text('question'),
                question_id=item.id('question_id') if self.test_mode else made_up_id,
                answers=item.texts('answer', [], or_one=True),
                weight=VISUAL_GENOME_WEIGHT if source == 'vg' else 1.0,
            )

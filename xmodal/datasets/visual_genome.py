"""Reader of Visual Genome's questions."""

from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.answers import normalize_answer
from xmodal.datasets.base import find_files
from xmodal.datasets.json_stream import stream_json_list
from xmodal.datasets.questions import VISUAL_GENOME_WEIGHT, QuestionDataset
from xmodal.files import explain_errors, read_json
from xmodal.registry import DATASETS


@DATASETS.register_module()
class VisualGenomeQuestionDataset(QuestionDataset):
    """Visual Genome's ``question_answers.json``, with answers in VQA's form.

    Each question has one answer, a sentence ("A teddy bear."). It is written as VQA's evaluation
    writes answers ("teddy bear"), and weighs half as much as the answers of ten people.

    Args:
        ann_file: file or files, below ``data_root``.
        image_data: Visual Genome's ``image_data.json``, below ``data_root``. It says in which of
            the two archives, ``VG_100K`` and ``VG_100K_2``, an image is; None when all images are
            in one folder.
        data_root: folder that paths are relative to.
        **kwargs: see :class:`QuestionDataset`.
    """

    layout = '[{"qas": [{"image_id", "question", "answer", "qa_id"}, …]}, …]'

    def __init__(
        self,
        ann_file: str | list[str],
        image_data: str | None = None,
        data_root: str = '',
        **kwargs,
    ) -> None:
        self.image_data = image_data and find_files(self, image_data, data_root)[0]
        super().__init__(ann_file, data_root=data_root, **kwargs)

    def read_tables(self) -> dict:
        """``folders``: the archive of each image; None without ``image_data``."""
        if not self.image_data:
            return {'folders': None}
        with explain_errors(self.image_data, '[{"image_id", "url": "https://…/VG_100K/1.jpg"}, …]'):
            images = read_json(self.image_data)
            return {'folders': {image['image_id']: image['url'].split('/')[-2] for image in images}}

    def read_records(self, file: Path, folders: dict[int, str] | None) -> Iterable[dict]:
        """One record per question whose normalised answer is not empty."""
        for image in stream_json_list(file):
            for item in image['qas']:
                answer = normalize_answer(item['answer'])
                if not answer:
                    continue
                image_id = item['image_id']
                folder = folders[image_id] if folders else ''
                yield self.record(
                    image=str(Path(folder, f'{image_id}.jpg')),
                    image_id=image_id,
                    question=item['question'],
                    question_id=item['qa_id'],
                    answers=[answer],
                    weight=VISUAL_GENOME_WEIGHT,
                )

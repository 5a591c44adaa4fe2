"""Reader of Visual Genome's questions."""

from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.answers import normalize_answer
from xmodal.datasets.coco_images import VisualGenomeImagesDataset
from xmodal.datasets.json_stream import stream_objects
from xmodal.datasets.questions import VISUAL_GENOME_WEIGHT
from xmodal.fields import as_objects
from xmodal.files import explain_errors, read_json
from xmodal.registry import DATASETS


@DATASETS.register_module()
class VisualGenomeQuestionDataset(VisualGenomeImagesDataset):
    """Visual Genome's ``question_answers.json``, with answers in VQA's form.

    Each question has one answer, a sentence ("A teddy bear."). It is written as VQA's evaluation
    writes answers ("teddy bear"), and weighs half as much as the answers of ten people.

    Args:
        ann_file: file or files, below ``data_root``.
        image_data: Visual Genome's ``image_data.json``, below ``data_root``. It says in which of
            the two archives, ``VG_100K`` and ``VG_100K_2``, an image is; None when all images are
            in one folder.
        **kwargs: see :class:`VisualGenomeImagesDataset`.
    """

    layout = '[{"qas": [{"image_id", "question", "answer", "qa_id"}, …]}, …]'

    def read_tables(self) -> dict:
        """``folders``: the archive of each image, None without ``image_data``; ``excluded``."""
        tables = super().read_tables()
        if not self.image_data:
            return {**tables, 'folders': None}
        with explain_errors(self.image_data, '[{"image_id", "url": "https://…/VG_100K/1.jpg"}, …]'):
            folders: dict[int, str] = {}
            for image in as_objects(read_json(self.image_data)):
                _, *folder = image.text('url').rsplit('/', 2)[:2]
                if not folder:
                    raise image.error('url', 'an address with a folder')
                folders[image.integer('image_id')] = folder[0]
        return {**tables, 'folders': folders}

    def read_records(
        self, file: Path, folders: dict[int, str] | None, excluded: frozenset[str]
    ) -> Iterable[dict]:
        """One record per question whose normalised answer is not empty."""
        for image in stream_objects(file):
            for item in image.objects('qas'):
                answer, image_id = normalize_answer(item.text('answer')), item.integer('image_id')
                if not answer or str(image_id) in excluded:
                    continue
                if folders is not None and image_id not in folders:
                    raise item.error('image_id', f'the id of an image of {self.image_data}')
                folder = folders[image_id] if folders else ''
                yield self.record(
                    image=str(Path(folder, f'{image_id}.jpg')),
                    image_id=image_id,
                    question=item.text('question'),
                    question_id=item.id('qa_id'),
                    answers=[answer],
                    weight=VISUAL_GENOME_WEIGHT,
                )

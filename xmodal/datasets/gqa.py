"""Reader of GQA's questions."""

from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.coco_images import VisualGenomeImagesDataset
from xmodal.datasets.seeding import derive_seed
from xmodal.fields import Fields, read_object
from xmodal.registry import DATASETS


@DATASETS.register_module()
class GqaDataset(VisualGenomeImagesDataset):
    """GQA's files, ``{train,val,testdev,test}_{balanced,all}_questions.json``.

    In addition to the fields of every question, a sample has ``gqa``: the fields that the official
    evaluation needs, with the keys of :class:`xmodal.evaluation.gqa.GqaQuestion`. Its
    ``answer_type`` is 'binary' or 'open', as in the evaluation.

    Args:
        ann_file: file or files, below ``data_root``; ``train_all_questions/`` has ten files.
        **kwargs: see :class:`VisualGenomeImagesDataset`.
    """

    layout = (
        '{"question id": {"question", "imageId", "answer" (not in tests), "isBalanced", '
        '"types": {"structural", "semantic", …}, "groups": {"global"}, "entailed": […], '
        '"annotations": {"question": {"3:5": "object id"}, "fullAnswer"}}, …}'
    )

    def read_records(self, file: Path, excluded: frozenset[str]) -> Iterable[dict]:
        """One record per question."""
        questions = read_object(file)
        for question_id in questions:
            item = questions.object(question_id)
            answer, types = item.text('answer', None), item.object('types', {})
            structural, image = types.text('structural', None), str(item.id('imageId'))
            if image in excluded:
                continue
            record = self.record(
                image=f'{image}.jpg',
                image_id=derive_seed(image),
                question=item.text('question'),
                question_id=question_id,
                answers=[] if answer is None else [answer],
                answer_type='' if structural is None else gqa_answer_type(structural),
                target=None if answer is None else {answer: 1.0},  # unchanged, unlike VQA's
            )
            gqa = {
                'structural': structural,
                'semantic': types.text('semantic', None),
                'detailed': types.text('detailed', ''),
                'group': item.object('groups', {}).text('global', None),
                'balanced': item.flag('isBalanced', True),
                'entailed': [o for o in item.texts('entailed', []) if o != question_id],
                'objects': named_objects(item),
            }
            yield {**record, 'gqa': gqa}


def named_objects(item: Fields) -> list[str] | None:
    """Ids of the objects that a question and its full answer name; None if it is not annotated."""
    if 'annotations' not in item:
        return None
    annotations = item.object('annotations')
    parts = (annotations.object(part, {}) for part in ('question', 'fullAnswer'))
    return [part.text(words) for part in parts for words in part]


def gqa_answer_type(structural: str) -> str:
    """'open' for a query, 'binary' for all types whose questions name the possible answers."""
    return 'open' if structural == 'query' else 'binary'

"""Reader of GQA's own questions."""

import random
from collections.abc import Iterable
from pathlib import Path

from xmodal.datasets.seeding import derive_seed
from xmodal.datasets.vqa import QuestionDataset
from xmodal.files import read_json
from xmodal.registry import DATASETS


@DATASETS.register_module()
class GqaDataset(QuestionDataset):
    """GQA's files, ``{train,val,testdev,test}_{balanced,all}_questions.json``.

    A sample has, besides what every question has, ``gqa``: what the official evaluation asks of it,
    the keys of :class:`xmodal.evaluation.gqa.GqaQuestion`. Its ``answer_type`` is 'binary' or
    'open', as there.

    Args:
        ann_file: file or files, below ``data_root``; the training questions of
            ``train_all_questions/`` are ten files.
        **others: see :class:`QuestionDataset`.
    """

    layout = (
        '{"question id": {"question", "imageId", "answer" (not in tests), "isBalanced", '
        '"types": {"structural", "semantic", …}, "groups": {"global"}, "entailed": […]}, …}'
    )

    def read_records(self, file: Path) -> Iterable[dict]:
        """One record a question."""
        for number, item in read_json(file).items():
            answer, types = item.get('answer'), item.get('types', {})
            structural = types.get('structural')
            record = self.record(
                image=f'{item["imageId"]}.jpg',
                image_id=derive_seed(item['imageId']),
                question=item['question'],
                question_id=number,
                answers=[] if answer is None else [answer],
                answer_type='' if structural is None else gqa_answer_type(structural),
            )
            gqa = {
                'structural': structural,
                'semantic': types.get('semantic'),
                'detailed': types.get('detailed') or '',
                'group': (item.get('groups') or {}).get('global'),
                'balanced': item.get('isBalanced', True),
                'entailed': [other for other in item.get('entailed') or () if other != number],
            }
            yield {**record, 'gqa': gqa}

    def describe(self, index: int, chooser: random.Random) -> dict:
        """The image with its question, and what the evaluation asks of it."""
        return {**super().describe(index, chooser), 'gqa': self.records[index]['gqa']}


def gqa_answer_type(structural: str) -> str:
    """'open' for a query, 'binary' for all that names its possible answers."""
    return 'open' if structural == 'query' else 'binary'

"""The embedded world as LXMERT's pre-training data: captions and questions of an image."""

from collections import Counter
from pathlib import Path

from xmodal.datasets.answers import normalize_answer, normalize_lxmert_answer
from xmodal.datasets.shapes.gqa import write_gqa_items
from xmodal.datasets.shapes.questions import PEOPLE, answer_list, write_questions
from xmodal.datasets.shapes.record import Record, Splits
from xmodal.datasets.vqa import answer_score
from xmodal.files import write_json


def write_lxmert(folder: Path, splits: Splits) -> None:
    """``lxmert/{train,val,test}.json``, the table ``all_ans.json`` and ``answer_list.json``.

    Sentences are the captions and the balanced questions in VQA's and GQA's form, labels the scores
    of their answers. An image's id is the stem of its file.
    """
    for split, records in splits.items():
        images = [_image(split, record) for record in records]
        write_json(folder / 'lxmert' / f'{split}.json', images)
    # GQA's questions have no answer that VQA's list lacks.
    table = list(dict.fromkeys(map(normalize_lxmert_answer, answer_list())))
    known = [{'ans': answer, 'dsets': ['vqa', 'gqa']} for answer in table]
    write_json(folder / 'lxmert' / 'all_ans.json', known)
    write_json(folder / 'lxmert' / 'answer_list.json', table)


def _image(split: str, record: Record) -> dict:
    asked = write_questions(split, record.scene)
    items = write_gqa_items(split, record.scene)
    return {
        'img_id': Path(record.image).stem,
        'sentf': {
            'mscoco': list(record.captions),
            'vqa': [f'{question.text}?' for question, _ in asked],
            'gqa': [f'{item.text}?' for item in items],
        },
        'labelf': {
            'vqa': [_label(answers) for _, answers in asked],
            'gqa': [{item.answer: 1.0} for item in items],
        },
    }


def _label(answers: list[str]) -> dict[str, float]:
    """Scores by answer, as LXMERT has them: 0.3, 0.6, 0.9 or 1."""
    counts = Counter(map(normalize_answer, answers))
    return {answer: round(answer_score(n, PEOPLE), 2) for answer, n in counts.items()}

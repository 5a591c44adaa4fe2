"""The embedded world as LXMERT's pre-training data: captions and questions of an image."""

from pathlib import Path

from xmodal.datasets.answers import answer_scores, normalize_lxmert_answer
from xmodal.datasets.shapes.gqa import generate_gqa_items
from xmodal.datasets.shapes.questions import answer_list
from xmodal.datasets.shapes.record import Record, Splits
from xmodal.datasets.shapes.vqa import generate_questions
from xmodal.files import write_json


def write_lxmert(folder: Path, splits: Splits) -> None:
    """``lxmert/{train,val,test}.json``, the table ``all_ans.json`` and ``answer_list.json``.

    Sentences are the captions, VQA's questions and GQA's balanced questions; labels are the scores
    of their answers. The id of an image is the stem of its file name.
    """
    for split, records in splits.items():
        images = [_image(split, record) for record in records]
        write_json(folder / 'lxmert' / f'{split}.json', images)
    # VQA's list has all answers of GQA's questions.
    table = list(dict.fromkeys(map(normalize_lxmert_answer, answer_list())))
    entries = [{'ans': answer, 'dsets': ['vqa', 'gqa']} for answer in table]
    write_json(folder / 'lxmert' / 'all_ans.json', entries)
    write_json(folder / 'lxmert' / 'answer_list.json', table)


def _image(split: str, record: Record) -> dict:
    questions = generate_questions(split, record.scene)
    items = generate_gqa_items(split, record.scene)
    return {
        'img_id': Path(record.image).stem,
        'sentf': {
            'mscoco': list(record.captions),
            'vqa': [f'{question.text}?' for question, _ in questions],
            'gqa': [f'{item.text}?' for item in items],
        },
        'labelf': {
            'vqa': [_label(answers) for _, answers in questions],
            'gqa': [{item.answer: 1.0} for item in items],
        },
    }


def _label(answers: list[str]) -> dict[str, float]:
    """Scores by answer, with LXMERT's values 0.3, 0.6, 0.9 and 1."""
    return {answer: round(score, 2) for answer, score in answer_scores(answers).items()}

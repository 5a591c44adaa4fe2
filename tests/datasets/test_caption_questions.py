"""Questions that captions answer."""

import json

import pytest

from tools.dataset_converters import caption_questions as tool
from xmodal.datasets.caption_questions import CaptionQuestions

# Words with "-ing" tell which others are verbs: "runs", "sits".
OTHERS = ['a man running', 'a cat sitting', 'jumping', 'riding', 'a building']


def ask(*captions):
    return CaptionQuestions([*captions, *OTHERS]).ask(captions)


@pytest.mark.parametrize(
    ('caption', 'expected'),
    [
        (
            'Two brown dogs run on a beach.',
            {
                'how many dogs are there?': '2',
                'how many dogs are in the picture?': '2',
                'how many dogs are visible?': '2',
                'what color are the dogs?': 'brown',
                'where is this?': 'beach',
                'where was this picture taken?': 'beach',
                'what animal is this?': 'dog',
                'what animal is in the picture?': 'dog',
            },
        ),
        (
            'the man is riding on a blue skateboard',
            {
                'what is the man doing?': 'riding',
                'what is the man riding on?': 'skateboard',
                'what color is the skateboard?': 'blue',
                'what sport is this?': 'skateboarding',
                'what sport is being played?': 'skateboarding',
                'what game are they playing?': 'skateboarding',
            },
        ),
        ('A man runs past a building', {}),  # no colour, no number, "building" is no verb
        (
            'a woman wearing a black and white hat',
            {'what is the woman wearing?': 'hat', 'what color is the hat?': 'black and white'},
        ),
        ('a grey dress', {'what color is the dress?': 'gray'}),
        ('beach', {}),
        ('', {}),
    ],
)
def test_a_caption_answers_what_it_tells(caption, expected):
    assert ask(caption) == {question: {answer: 1.0} for question, answer in expected.items()}


def test_questions_are_in_the_order_of_the_caption():
    asked = list(ask('two dogs run on a beach'))
    assert [text.split()[1] for text in asked] == ['many'] * 3 + ['is', 'was'] + ['animal'] * 2


def test_answers_are_scored_by_the_captions_that_give_them():
    asked = ask('a red car', 'the red car', 'a blue car', 'a red car and a red car')
    assert asked == {'what color is the car?': {'red': 1.0, 'blue': pytest.approx(1 / 3)}}


def test_the_tool_writes_lxmerts_format(tmp_path, monkeypatch):
    captions = tmp_path / 'captions.json'
    items = [
        {'image': 'images/1.jpg', 'caption': ['two cats', 'three cats']},
        {'image': 'images/2.jpg', 'caption': 'nothing to ask'},
    ]
    captions.write_text(json.dumps(items))
    out = tmp_path / 'questions.json'
    monkeypatch.setattr('sys.argv', ['caption_questions', str(captions), '--out', str(out)])
    tool.main()
    (image,) = json.loads(out.read_text())
    assert image['img_id'] == '1'
    questions, labels = image['sentf']['caption_questions'], image['labelf']['caption_questions']
    asked = dict(zip(questions, labels, strict=True))
    assert asked['how many cats are there?'] == {'2': 1.0, '3': 1.0}
    assert asked['what animal is this?'] == {'cat': 1.0}
    with pytest.raises(FileExistsError, match='already exists'):
        tool.main()


def test_captions_without_questions_are_an_error(tmp_path, monkeypatch):
    captions = tmp_path / 'captions.json'
    captions.write_text(json.dumps([{'image': '1.jpg', 'caption': 'nothing to ask'}]))
    out = tmp_path / 'questions.json'
    monkeypatch.setattr('sys.argv', ['caption_questions', str(captions), '--out', str(out)])
    with pytest.raises(ValueError, match='no caption of .*captions.json answers a question'):
        tool.main()
    assert not out.exists()

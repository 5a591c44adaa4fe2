"""The list of answers, splits by image, and the official accuracy of a file."""

import json
import sys

import pytest
from test_two_processes import check_one_and_two

from tools.analysis import evaluate_vqa
from tools.dataset_converters import lxmert_pretrain, vqa_answers, vqa_split


def run(monkeypatch, tool, *arguments):
    monkeypatch.setattr(sys, 'argv', ['tool', *map(str, arguments)])
    tool.main()


def annotation(question_id, question_type, answer, answer_type='other'):
    return {
        'question_id': question_id,
        'question_type': question_type,
        'answer_type': answer_type,
        'multiple_choice_answer': answer,
        'answers': [{'answer': answer}] * 10,
    }


@pytest.fixture
def write(tmp_path):
    def write_json(name, content):
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / name

    return write_json


def test_the_list_has_the_answers_of_enough_questions(monkeypatch, write, tmp_path):
    answers = ['The dog', 'dog', 'Two', '2', '2', 'cat', 'A']
    annotations = [annotation(index, '', answer) for index, answer in enumerate(answers)]
    file = write('annotations.json', {'annotations': annotations})
    out = tmp_path / 'list.json'
    run(monkeypatch, vqa_answers, file, '--out', out, '--least', 2)
    assert json.loads(out.read_text()) == ['2', 'dog']
    with pytest.raises(FileExistsError, match='already exists'):
        run(monkeypatch, vqa_answers, file, '--out', out)


def test_both_files_are_split_by_image(monkeypatch, write, tmp_path):
    items = [dict(question_id=index, image_id=index // 2) for index in range(4)]
    files = [
        write(f'{name}.json', {'data_subtype': 'mini', name: items})
        for name in ('questions', 'annotations')
    ]
    splits, out = write('splits.json', {'0': 'test', '1': 'train'}), tmp_path / 'out'
    run(monkeypatch, vqa_split, *files, splits, '--out', out)
    for name in ('questions', 'annotations'):
        for split, expected in (('test', items[:2]), ('train', items[2:])):
            content = json.loads((out / f'{name}_{split}.json').read_text())
            assert content == {'data_subtype': 'mini', name: expected}
    with pytest.raises(FileExistsError, match='already exists'):
        run(monkeypatch, vqa_split, *files, splits, '--out', out)
    splits = write('splits.json', {'0': 'test'})
    files[1] = write('annotations.json', {'annotations': items})
    files[0] = write('questions.json', {'questions': items[:2]})
    with pytest.raises(ValueError, match='annotations.json .*does not name image 1'):
        run(monkeypatch, vqa_split, *files, splits, '--out', tmp_path / 'other')
    assert not (tmp_path / 'other').exists()  # so that the command can be repeated


def test_the_prior_gives_the_most_frequent_answer_of_each_question_type(monkeypatch, write, capsys):
    training = [
        annotation(1, 'how many', '2', 'number'),
        annotation(2, 'how many', '2', 'number'),
        annotation(3, 'how many', '1', 'number'),
        annotation(4, 'what is', 'dog'),
    ]
    questions = [
        annotation(11, 'how many', '2', 'number'),
        annotation(12, 'how many', '1', 'number'),
        annotation(13, 'what is', 'cat'),
        annotation(14, 'why', '2'),
    ]
    prior = evaluate_vqa.prior_answers(training, questions)
    assert [item['answer'] for item in prior] == ['2', '2', 'dog', '2']
    predictions = [{'question_id': item['question_id'], 'answer': '2'} for item in questions]
    run(
        monkeypatch,
        evaluate_vqa,
        write('answers.json', predictions),
        write('annotations.json', {'annotations': questions}),
        '--prior',
        write('training.json', {'annotations': training}),
    )
    table = capsys.readouterr().out
    rows = {line.split('│')[1].strip(): line for line in table.splitlines() if '│' in line}
    assert '50.00' in rows['overall'] and '50.00' in rows['number']
    assert '0.00' in rows['what is'] and '100.00' in rows['why']


@pytest.mark.parametrize(
    ('answers', 'number', 'message'),
    [([], 1, 'question 1 has no answers'), (['a dog'], 2, 'question 1 has two annotations')],
)
def test_annotations_that_no_reader_takes_are_not_converted(
    monkeypatch, write, tmp_path, answers, number, message
):
    annotations = [{'question_id': 1, 'answers': [{'answer': text} for text in answers]}] * number
    questions = [{'question_id': 1, 'image_id': 5, 'question': 'What is it?'}]
    files = {
        '--questions': write('questions.json', {'questions': questions}),
        '--annotations': write('annotations.json', {'annotations': annotations}),
        '--out': tmp_path / 'out.json',
    }
    captions = write('captions.json', [])
    with pytest.raises(ValueError, match=f'annotations.json cannot be read.*{message}'):
        run(monkeypatch, lxmert_pretrain, captions, *(x for pair in files.items() for x in pair))


def test_two_processes_answer_as_one(shrink, tiny_world, tmp_path):
    config = shrink('configs/acerpe/vqa_shapes.py')
    config.model.answer_list = str(tiny_world / 'vqa/answer_list.json')
    for name in ('questions', 'annotations'):
        content = json.loads((tiny_world / f'vqa/{name}_test.json').read_text())
        content[name] = content[name][:41]
        (tmp_path / f'{name}.json').write_text(json.dumps(content))
    config.test_dataloader.dataset.update(
        ann_file=str(tmp_path / 'questions.json'), answer_file=str(tmp_path / 'annotations.json')
    )
    config.test_dataloader.batch_size = 7
    saved = check_one_and_two(config, tmp_path, ('test_evaluator', 'save_predictions'))
    assert len(saved) == 41

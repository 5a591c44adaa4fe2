"""The list of answers, and the official accuracy of a file."""

import json
import sys

import pytest
from test_two_processes import check_one_and_two

from tools.analysis import evaluate_vqa
from tools.dataset_converters import vqa_answers, vqa_split


def run(monkeypatch, tool, *arguments):
    monkeypatch.setattr(sys, 'argv', ['tool', *map(str, arguments)])
    tool.main()


def annotation(number, kind, answer, answer_type='other'):
    return {
        'question_id': number,
        'question_type': kind,
        'answer_type': answer_type,
        'multiple_choice_answer': answer,
        'answers': [{'answer': answer}] * 10,
    }


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        (tmp_path / name).write_text(json.dumps(content))
        return tmp_path / name

    return to


def test_the_list_has_answers_that_are_right_often_enough(monkeypatch, write, tmp_path):
    answers = ['The dog', 'dog', 'Two', '2', '2', 'cat', 'A']
    given = [annotation(number, '', answer) for number, answer in enumerate(answers)]
    file = write('annotations.json', {'annotations': given})
    out = tmp_path / 'list.json'
    run(monkeypatch, vqa_answers, file, '--out', out, '--least', 2)
    assert json.loads(out.read_text()) == ['2', 'dog']
    with pytest.raises(FileExistsError, match='there already'):
        run(monkeypatch, vqa_answers, file, '--out', out)


def test_both_files_are_cut_into_parts_by_image(monkeypatch, write, tmp_path):
    asked = [dict(question_id=number, image_id=number // 2) for number in range(4)]
    files = [
        write(f'{name}.json', {'data_subtype': 'mini', name: asked})
        for name in ('questions', 'annotations')
    ]
    parts, out = write('parts.json', {'0': 'test', '1': 'train'}), tmp_path / 'out'
    run(monkeypatch, vqa_split, *files, parts, '--out', out)
    for name in ('questions', 'annotations'):
        for part, own in (('test', asked[:2]), ('train', asked[2:])):
            content = json.loads((out / f'{name}_{part}.json').read_text())
            assert content == {'data_subtype': 'mini', name: own}
    with pytest.raises(FileExistsError, match='there already'):
        run(monkeypatch, vqa_split, *files, parts, '--out', out)
    parts = write('parts.json', {'0': 'test'})
    files[1] = write('annotations.json', {'annotations': asked})
    files[0] = write('questions.json', {'questions': asked[:2]})
    with pytest.raises(ValueError, match='annotations.json .*does not name image 1'):
        run(monkeypatch, vqa_split, *files, parts, '--out', tmp_path / 'other')
    assert not (tmp_path / 'other').exists()  # so that it can be repeated


def test_the_prior_answers_each_type_by_what_was_most_often_right(monkeypatch, write, capsys):
    training = [
        annotation(1, 'how many', '2', 'number'),
        annotation(2, 'how many', '2', 'number'),
        annotation(3, 'how many', '1', 'number'),
        annotation(4, 'what is', 'dog'),
    ]
    asked = [
        annotation(11, 'how many', '2', 'number'),
        annotation(12, 'how many', '1', 'number'),
        annotation(13, 'what is', 'cat'),
        annotation(14, 'why', '2'),
    ]
    prior = evaluate_vqa.prior_answers(training, asked)
    assert [item['answer'] for item in prior] == ['2', '2', 'dog', '2']
    given = [{'question_id': item['question_id'], 'answer': '2'} for item in asked]
    run(
        monkeypatch,
        evaluate_vqa,
        write('answers.json', given),
        write('asked.json', {'annotations': asked}),
        '--prior',
        write('training.json', {'annotations': training}),
    )
    table = capsys.readouterr().out
    rows = {line.split('│')[1].strip(): line for line in table.splitlines() if '│' in line}
    assert '50.00' in rows['overall'] and '50.00' in rows['number']
    assert '0.00' in rows['what is'] and '100.00' in rows['why']


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

"""Parameter counts: those of the papers, and those of the parts of SGRAF in its own code."""

import sys

import pytest

from tools.analysis import get_params


@pytest.fixture
def printed(monkeypatch, capsys):
    """Returns the lines that the tool prints."""

    def call(*arguments):
        monkeypatch.setattr(sys, 'argv', ['get_params.py', *arguments])
        get_params.main()
        return capsys.readouterr().out.splitlines()

    return call


def assert_rows(lines, rows):
    for part, millions in rows.items():
        line = next(line for line in lines if part in line)
        assert f' {millions} ' in line, line


@pytest.mark.parametrize('size, image, total', [(384, '43.8', '163.6'), (256, '43.5', '163.4')])
def test_the_model_of_ace_rpe_has_the_size_in_the_paper(printed, size, image, total):
    lines = printed('configs/acerpe/pretrain_4m.py', '--image-size', str(size))
    rows = {'text encoder': '66.6', 'image encoder': image, 'fusion encoder': '53.3'}
    assert_rows(lines, {**rows, 'without heads': total})
    assert not any('teacher' in line for line in lines)


def test_an_image_text_matcher_has_the_size_of_the_reference(printed):
    lines = printed('configs/temde/sgr_self_attention_f30k.py', '--vocab-size', '8481')
    rows = {'text encoder': '10.7', 'image encoder': '2.1', 'similarity': '5.3'}
    assert_rows(lines, {**rows, 'total': '18.1'})


def test_lxmert_is_counted_without_its_answer_table(printed):
    config = 'configs/lxmert/pretrain.py'
    lines = printed(config, '--answers', '9500')
    assert_rows(lines, {'without heads': '207.9', 'total': '228.1'})
    assert '9500 answers instead of those of data/lxmert/answer_list.json' in lines
    assert_rows(printed(config, '--answers', '1'), {'without heads': '207.9', 'total': '213.5'})


def test_emkum_is_counted_without_its_teacher(printed):
    lines = printed('configs/emkum/tte_post_coco_cc.py')
    assert_rows(lines, {'without heads': '131.9', 'total': '132.5'})
    assert not any('teacher' in line for line in lines)


@pytest.mark.parametrize(
    'config',
    [
        'acerpe/encoder_shapes',
        'acerpe/nlvr2_ta',
        'acerpe/snli_ve',
        'acerpe/vqa_v2',
        'emkum/tte_post_shapes',
        'lxmert/gqa_da',
        'lxmert/nlvr2',
        'temde/dual_gpo_bert_f30k',
    ],
)
def test_every_kind_of_model_is_counted(printed, config):
    lines = printed(f'configs/{config}.py', '--vocab-size', '100')
    assert float(next(line for line in lines if 'total' in line).split()[-2]) > 0.4


def test_a_missing_vocabulary_is_an_error(printed, tmp_path):
    config = tmp_path / 'config.py'
    config.write_text(
        "model = dict(data_preprocessor=dict(tokenizer=dict(vocabulary='none.json')))"
    )
    with pytest.raises(FileNotFoundError, match=r'none\.json does not exist: pass --vocab-size'):
        printed(str(config))

"""Parameter counts: ACE-RPE's (Sec. 4.1) and those of SGRAF's parts, measured on the reference."""

import subprocess
import sys

import pytest


def printed(*arguments):
    command = [sys.executable, 'tools/analysis/get_params.py', *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def assert_rows(lines, rows):
    for part, millions in rows.items():
        line = next(line for line in lines if part in line)
        assert millions in line, line


@pytest.mark.parametrize('size, image, total', [(384, '43.8', '163.6'), (256, '43.5', '163.4')])
def test_acerpes_model_has_the_papers_size(size, image, total):
    lines = printed('configs/acerpe/pretrain_4m.py', '--image-size', str(size))
    rows = {'text encoder': '66.6', 'image encoder': image, 'fusion encoder': '53.3'}
    assert_rows(lines, {**rows, 'in all': total})


def test_a_matching_model_has_the_references_size():
    lines = printed('configs/temde/sgr_self_attention_f30k.py', '--vocab-size', '8481')
    rows = {'text encoder': '10.7', 'image encoder': '2.1', 'similarity': '5.3'}
    assert_rows(lines, {**rows, 'in all': '18.1'})

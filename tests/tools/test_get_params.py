"""The paper's parameter counts (Sec. 4.1)."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize('size, image, total', [(384, '43.8', '163.6'), (256, '43.5', '163.4')])
def test_the_papers_model_has_the_papers_size(size, image, total):
    command = [sys.executable, 'tools/analysis/get_params.py', 'configs/acerpe/pretrain_4m.py']
    output = subprocess.run(
        [*command, '--image-size', str(size)], capture_output=True, text=True, check=True
    ).stdout
    for part, millions in (
        ('text encoder', '66.6'), ('image encoder', image), ('fusion encoder', '53.3'),
        ('in all', total),
    ):  # fmt: skip
        line = next(line for line in output.splitlines() if part in line)
        assert millions in line, line

"""The calculation of scaling, against a ring walked by hand and sums written out."""

import sys

import pytest

from tools.analysis import scaling
from xmodal.benchmark.scaling import (
    GPUS,
    Gpu,
    Training,
    efficiency,
    gathered_bytes,
    gradient_bytes,
    state_bytes,
    step_seconds,
    training_flops,
)

SMALL = Training(parameters=1200, teacher=1000, largest=100, width=4, flops=1e6, batch=10)


@pytest.mark.parametrize('processes', [1, 2, 3, 8])
def test_a_ring_sends_each_part_around_twice(processes):
    part = SMALL.parameters * 4 / processes
    sent = 0.0
    for _ in ('sum the parts', 'hand the sums on'):
        for _ in range(processes - 1):
            sent += part
    assert gradient_bytes(SMALL.parameters, processes) == pytest.approx(sent)


def test_each_process_gets_the_pairs_of_the_others():
    of_pair = 4 * 4 + 4 * 4 + 8 + 8  # both embeddings, both numbers
    assert gathered_bytes(SMALL, 3) == 2 * 10 * of_pair
    assert gathered_bytes(SMALL, 1) == 0


def test_sharding_divides_all_but_one_unit():
    weights, gradients, moments, teacher = 4800, 4800, 9600, 4000
    whole = weights + gradients + moments + teacher
    assert state_bytes(SMALL, 4, sharded=False) == whole
    assert state_bytes(SMALL, 4, sharded=True) == whole / 4 + 400


def test_gradients_wait_only_for_what_the_backward_pass_does_not_hide():
    fast = Gpu(flops=1e9, node=8, inside=1e9, outside=1e3)
    computing, waiting = step_seconds(SMALL, fast, 8, mfu=0.5)
    assert computing == pytest.approx(10 * 1e6 / 0.5e9) == 0.02
    assert waiting == pytest.approx(gathered_bytes(SMALL, 8) / 1e9)  # gradients take 8.4e-6 s
    computing, waiting = step_seconds(SMALL, fast, 16, mfu=0.5)
    slow = gradient_bytes(1200, 16) / 1e3 - 2 / 3 * 0.02
    assert waiting == pytest.approx(slow + gathered_bytes(SMALL, 16) / 1e3)
    assert efficiency(SMALL, fast, 16, 0.5) == pytest.approx(0.02 / (0.02 + waiting))
    assert efficiency(SMALL, GPUS['a100'], 1, 0.5) == 1


def test_passes_of_a_training_step():
    parts = {'image encoder': 100, 'text encoder': 10, 'fusion encoder': 20, 'position': 5}
    assert training_flops(parts, {'itc'}, teacher=False) == 3 * 110
    assert training_flops(parts, {'itc'}, teacher=True) == 4 * 110
    with_all = 4 * 110 + 9 * 25 + 4 * (10 + 25) + 3 * (100 + 25)
    assert training_flops(parts, {'ace', 'itm', 'mlm', 'mim'}, teacher=True) == with_all


def test_the_tool_prints_a_row_for_each_number_of_gpus(monkeypatch, capsys):
    config = 'configs/acerpe/pretrain_shapes_paper.py'
    monkeypatch.setattr(sys, 'argv', ['scaling.py', config, '--gpu', 'h200'])
    scaling.main()
    printed = capsys.readouterr().out
    assert 'h200, a step' in printed and '512' in printed and 'cores feed it' in printed

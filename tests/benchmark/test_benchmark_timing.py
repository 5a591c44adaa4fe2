"""Timing in alternating rounds."""

import os
import sys
import time

import pytest
import torch

from xmodal.benchmark import (
    TrainingStep,
    Worker,
    alternate,
    cpu_seconds_of,
    median_ratio,
    proportional_memory,
    timed,
)


class Sleep(TrainingStep):
    """Sleeps with 96 MiB in hand, beside 64 MiB that rest."""

    def __init__(self, seconds):
        self.duration = seconds
        self.resting = torch.ones(64, 2**18)

    def __call__(self):
        held = [torch.ones(2**18) for _ in range(96)]
        time.sleep(self.duration)
        del held


def test_variants_alternate_in_reversed_order_and_the_warm_up_does_not_count():
    calls = []

    def timer(name):
        return lambda: (calls.append(name), len(calls))[1]

    seconds = alternate({'a': timer('a'), 'b': timer('b')}, repeats=2, warm_up=1)
    assert ''.join(calls) == 'baabba'
    assert seconds == {'a': [3, 6], 'b': [4, 5]}


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    assert median_ratio([2.0, 3.0, 8.0], [1.0, 2.0, 2.0]) == 2.0


def test_timed_returns_the_seconds_and_the_result():
    seconds, result = timed(lambda x: (time.sleep(0.02), x)[1], 3)
    assert 0.02 <= seconds < 5 and result == 3


def test_waiting_takes_no_cpu_seconds():
    assert 0 <= cpu_seconds_of(time.sleep, 0.1) < 0.05
    assert cpu_seconds_of(sum, range(1_000_000)) > 0


def test_a_worker_calls_methods_in_another_process():
    worker = Worker(Sleep, 0.02)
    assert 0.02 <= worker.call('seconds') < 5
    assert worker.call('memory') == pytest.approx(96 / 1024, rel=0.1)
    worker.close()
    assert not worker._process.is_alive()


@pytest.mark.skipif(sys.platform != 'linux', reason='/proc is read')
def test_the_memory_of_processes_is_summed():
    memory = proportional_memory([os.getpid()])
    assert 0 < memory['Pss_Anon'] <= memory['Pss']
    both = proportional_memory([os.getpid()] * 2)
    assert both['Pss_Anon'] > 1.5 * memory['Pss_Anon']

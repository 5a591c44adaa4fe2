"""The benchmark of a data set's index."""

import os
import sys
from argparse import Namespace
from multiprocessing import get_context

import pytest

from tools.analysis import benchmark_index


@pytest.mark.skipif(sys.platform != 'linux', reason='processes are forked')
def test_a_rank_without_workers_reads_itself(tmp_path):
    """It ended in an error of the loader, and the benchmark waited for it without end."""
    benchmark_index.write_annotations(tmp_path, 200)
    context = get_context('fork')
    pids, end = context.SimpleQueue(), context.Event()
    end.set()
    args = Namespace(ranks=1, workers=0, samples=128)
    benchmark_index.run_rank(tmp_path, 0, args, pids, end)
    assert pids.get() == {os.getpid()}

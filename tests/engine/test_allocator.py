"""Memory that is kept from one step to the next."""

import platform
import subprocess
import sys

import pytest
import torch

# Page faults of steps that make tensors of 64 MB and of 1 MB, after the first steps.
SCRIPT = """
import os
import resource
import sys
import torch
from xmodal.engine.allocator import keep_freed_memory

def step():
    kept = [torch.ones(2**size) for size in (24, 18, 24)]

if {keep}:
    keep_freed_memory()
if {fork} and (child := os.fork()):
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
for _ in range(10):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(keep, fork=False):
    command = [sys.executable, '-c', SCRIPT.format(keep=keep, fork=fork)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='of glibc')
@pytest.mark.skipif(torch.cuda.is_available(), reason='for training on a CPU')
def test_a_step_gets_no_new_pages_from_the_system():
    assert page_faults(True) < 1000 < 10_000 < page_faults(False)


@pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='of glibc')
@pytest.mark.skipif(torch.cuda.is_available(), reason='for training on a CPU')
def test_a_worker_returns_what_it_frees():
    assert page_faults(True, fork=True) > 10_000

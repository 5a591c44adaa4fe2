"""The kernels of a GPU against the literal loop: on a GPU, else in Triton's interpreter."""

import os
import subprocess
import sys

import pytest
import torch
from literal_sgraf import literal_logits
from token_sets import REGIONS, padded, token_sets

from xmodal.models.sgraf import all_pairs, score_all_pairs, similarity
from xmodal.structures import PackedTexts, Tokens

pytest.importorskip('triton')

IS_INTERPRETED = bool(os.environ.get('TRITON_INTERPRET'))
ON_GPU = torch.cuda.is_available() and not IS_INTERPRETED
WIDTH = 128  # two of the pieces that the kernels pass
# Of the scores' deviation.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 0.01, torch.bfloat16: 0.05}


@pytest.fixture
def device(monkeypatch):
    """A GPU; or the CPU, where the kernels are interpreted, and take float32, too."""
    if ON_GPU:
        return torch.device('cuda')
    monkeypatch.setattr(similarity, 'can_fuse', lambda *_: True)
    monkeypatch.setattr(all_pairs, 'fastest_dtype', lambda dtype, _: dtype)
    return torch.device('cpu')


@pytest.fixture(params=['float32', 'float16', 'bfloat16'])
def dtype(request):
    """Of the products."""
    if request.param == ('float32' if ON_GPU else 'bfloat16'):
        pytest.skip('a GPU has no kernels for float32, the interpreter no arithmetic of bfloat16')
    return getattr(torch, request.param)


@pytest.mark.skipif(ON_GPU or IS_INTERPRETED, reason='the tests below run in this process')
def test_the_interpreter_agrees():
    """Triton must be imported with the variable set, so in another process."""
    call = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', __file__]
    done = subprocess.run(
        call, env={**os.environ, 'TRITON_INTERPRET': '1'}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not ON_GPU and not IS_INTERPRETED, reason='needs a GPU or the interpreter')
def test_scores_are_those_of_the_literal_loop(build, device, dtype, reasoning, pooling):
    module = build(reasoning, pooling, width=WIDTH)
    images, captions = token_sets([REGIONS] * 2, WIDTH), token_sets([1, 4, 4, 4, 19], WIDTH)
    expected = literal_logits(module, images, captions)
    actual = score_all_pairs(
        module.to(device), Tokens(torch.stack(images)), PackedTexts.from_list(captions), dtype=dtype
    )
    error = (actual.double() - expected).square().mean().sqrt() / expected.std()
    assert error < TOLERANCE[dtype]


@pytest.mark.skipif(not ON_GPU and not IS_INTERPRETED, reason='needs a GPU or the interpreter')
@pytest.mark.parametrize('pooling', ['t_emde', 'none'])
def test_images_may_have_any_number_of_regions(build, device, dtype, reasoning, pooling):
    module = build(reasoning, pooling, width=WIDTH)
    images, captions = token_sets([5, 2, 1], WIDTH), token_sets([4, 17], WIDTH)
    expected = literal_logits(module, images, captions)
    actual = score_all_pairs(
        module.to(device), padded(images, 3.0), PackedTexts.from_list(captions), dtype=dtype
    )
    error = (actual.double() - expected).square().mean().sqrt() / expected.std()
    assert error < TOLERANCE[dtype]

"""A new pooling and a new task head: a file and a line of a config each, without the package."""

import sys
from pathlib import Path

import pytest
import torch

from xmodal.registry import MODELS
from xmodal.structures import DataSample, ImageTextBatch

POOLING = '''
"""A pooling in one file: the token with the largest norm."""

from torch import nn

from xmodal.registry import MODELS


@MODELS.register_module()
class LargestNormPooling(nn.Module):
    def __init__(self, embed_dims):
        super().__init__()
        self.out_dims = embed_dims

    def forward(self, embeddings, attention_mask=None):
        norms = embeddings.norm(dim=-1)
        if attention_mask is not None:
            norms = norms.masked_fill(~attention_mask, -1)
        return embeddings[range(len(norms)), norms.argmax(1)]
'''
TASK_HEAD = '''
"""A task head in one file: the mean of the fused words, and one linear layer."""

from torch import nn

from xmodal.models.heads import ClassificationHead
from xmodal.registry import MODELS


@MODELS.register_module()
class MeanClassificationHead(ClassificationHead):
    def __init__(self, embed_dims, num_classes):
        super().__init__(embed_dims, num_classes)
        self.classifier = nn.Linear(embed_dims, num_classes)

    def forward(self, text_tokens):
        return self.classifier(text_tokens.mean(1))
'''


@pytest.fixture
def write_project(tmp_path, monkeypatch):
    """Writes a module, and a config that adds one line to a config of the package."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(module, content, base, line):
        (tmp_path / f'{module}.py').write_text(content)
        file = tmp_path / 'config.py'
        file.write_text(
            f"_base_ = '{Path(base).resolve()}'\n"
            f"custom_imports = dict(imports=['{module}'])\n"
            f'{line}\n'
        )
        return file

    yield write
    for module in ('largest_norm', 'mean_classification'):
        sys.modules.pop(module, None)


def random_batch(size=4):
    ids = torch.arange(size)
    input_ids = torch.randint(5, 20, (size, 6))
    input_ids[:, 0], input_ids[:, -1] = 2, 3
    mask = torch.ones(size, 6, dtype=torch.bool)
    return ImageTextBatch(torch.randn(size, 3, 32, 32), input_ids, mask, ids, ids + 100, ids)


def test_a_new_pooling_is_one_file_and_one_line(write_project, shrink):
    file = write_project(
        'largest_norm',
        POOLING,
        'configs/acerpe/pretrain_shapes.py',
        "model = dict(backbone=dict(text_pooling=dict(type='LargestNormPooling')))",
    )
    config = shrink(file)
    config.model.heads = dict(itc=dict(type='ITCHead'))
    config.model.queue_length = 0
    model, batch = MODELS.build(config.model), random_batch()
    assert type(model.backbone.text_pooling).__name__ == 'LargestNormPooling'
    words = model.encode_text(batch.input_ids, batch.attention_mask)
    tokens = words.tokens.embeddings[:, 1:]
    largest = torch.stack([x[x.norm(dim=1).argmax()] for x in tokens])
    expected = torch.nn.functional.normalize(model.backbone.text_proj(largest), dim=1)
    torch.testing.assert_close(words.embedding, expected)
    model(batch, mode='loss')['loss_itc'].backward()
    assert model.backbone.image_encoder.vit.patch_embed[0].weight.grad.any()


def test_a_new_task_head_is_one_file_and_one_line(write_project, shrink):
    file = write_project(
        'mean_classification',
        TASK_HEAD,
        'configs/acerpe/snli_ve_shapes.py',
        "model = dict(head=dict(type='MeanClassificationHead'))",
    )
    model, batch = MODELS.build(shrink(file).model), random_batch()
    head = model.heads['classification']
    assert type(head).__name__ == 'MeanClassificationHead'
    assert isinstance(head.classifier, torch.nn.Linear)
    samples = [DataSample(label=label) for label in (0, 1, 2, 1)]
    values = model(batch, samples, mode='loss')
    assert set(values) == {'loss_classification', 'accuracy'}
    values['loss_classification'].backward()
    assert model.backbone.fusion.layers[0].feed_forward.fc1.weight.grad.any()
    predicted = model.eval()(batch, samples, mode='predict')
    assert all(sample.probabilities.shape == (3,) for sample in predicted)

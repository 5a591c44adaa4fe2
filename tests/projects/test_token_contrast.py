"""projects/token_contrast: a pre-training objective from outside the package."""

import pytest
import torch
from mmengine.config import Config
from torch.nn.functional import cross_entropy, normalize

from xmodal.ablation import read_table
from xmodal.engine.launch import build_runner
from xmodal.registry import MODELS
from xmodal.structures import Encoded, ImageTextBatch, PretrainStep, Tokens

CONFIG = 'projects/token_contrast/pretrain_shapes.py'
B, M, N, D = 4, 5, 3, 8


@pytest.fixture
def head(monkeypatch):
    monkeypatch.syspath_prepend('.')
    Config.fromfile(CONFIG)
    return MODELS.build(dict(type='TokenContrastHead', embed_dims=D, dims=6, temperature=0.5))


def literal_similarities(patches, words):
    """FILIP's Eqs. 3 and 4 of one image and one text."""
    of_image = sum(max(float(patch @ word) for word in words) for patch in patches) / len(patches)
    of_text = sum(max(float(word @ patch) for patch in patches) for word in words) / len(words)
    return of_image, of_text


def make_step(image, text, image_ids):
    """What the head reads of a step."""
    mask = text.tokens.attention_mask
    images, input_ids = torch.zeros(B, 3, 8, 8), torch.zeros(B, 1 + N)
    batch = ImageTextBatch(images, input_ids, mask, image_ids, torch.arange(B), image_ids)
    return PretrainStep(batch, None, image, text, image, text, None, None, 0.0)


@torch.no_grad()
def test_the_loss_is_that_of_the_paper_where_all_images_differ(head):
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]]).bool()
    image = Encoded(Tokens(torch.randn(B, 1 + M, D), grid_size=(1, M)), torch.randn(B, 6))
    text = Encoded(Tokens(torch.randn(B, 1 + N, D), mask), torch.randn(B, 6))
    ids = torch.arange(B)
    actual = head.loss(None, make_step(image, text, ids))

    tables = torch.zeros(2, B, B)
    for i in range(B):
        patches = normalize(head.image_proj(image.tokens.embeddings[i, 1:]), dim=1)
        for t in range(B):
            words = normalize(head.text_proj(text.tokens.embeddings[t, 1:]), dim=1)
            real = words[: int(mask[t].sum()) - 1]
            tables[0, i, t], tables[1, t, i] = literal_similarities(patches, real)
    expected = sum(cross_entropy(table / 0.5, ids) for table in tables) / 2
    torch.testing.assert_close(actual['loss_tokens'], expected)
    assert actual['accuracy_tokens'] == (tables[0].argmax(1) == ids).float().mean()


@torch.no_grad()
def test_texts_of_one_image_share_the_target(head):
    image = Encoded(Tokens(torch.randn(B, 1 + M, D), grid_size=(1, M)), torch.randn(B, 6))
    mask = torch.ones(B, 1 + N, dtype=torch.bool)
    text = Encoded(Tokens(torch.randn(B, 1 + N, D), mask), torch.randn(B, 6))
    actual = head.loss(None, make_step(image, text, torch.tensor([5, 6, 5, 7])))
    patches = normalize(head.image_proj(image.tokens.embeddings[:, 1:]), dim=-1)
    words = normalize(head.text_proj(text.tokens.embeddings[:, 1:]), dim=-1)
    of_images, of_texts = head.similarity(patches, words, mask[:, 1:])
    targets = torch.eye(B)
    targets[0, 2] = targets[2, 0] = 1
    targets = targets / targets.sum(1, keepdim=True)
    expected = sum(cross_entropy(table / 0.5, targets) for table in (of_images, of_texts.T)) / 2
    torch.testing.assert_close(actual['loss_tokens'], expected)


def test_the_embedded_run_trains_it_beside_the_five(tiny_config, monkeypatch):
    monkeypatch.syspath_prepend('.')
    config = Config.fromfile(CONFIG)
    assert config.model.heads.tokens == dict(type='TokenContrastHead')
    tiny_config.model.heads.tokens = config.model.heads.tokens
    tiny_config.train_cfg.max_epochs = 1
    tiny_config.experiment_name = 'token contrast'
    runner = build_runner(tiny_config)
    before = runner.model.heads['tokens'].image_proj.weight.clone()
    runner.train()
    assert not torch.equal(runner.model.heads['tokens'].image_proj.weight, before)
    logged = runner.message_hub.log_scalars
    for name in ('loss_itc', 'loss_mim', 'loss_tokens', 'accuracy_tokens'):
        assert f'train/{name}' in logged


def test_its_table_merges_module_and_head_into_the_run():
    table = read_table('projects/token_contrast/ablations/heads.py')
    five, six = (row.options(table.stages['pretrain']) for row in table.rows)
    assert five == {}
    assert six == {
        'custom_imports.imports': ['projects.token_contrast.token_contrast'],
        'model.heads.tokens.type': 'TokenContrastHead',
    }

"""ACE-RPE added to a model that was trained without it does not change the outputs at first."""

import pytest
import torch
from mmengine.config import Config

from xmodal.registry import MODELS

WIDTH = 32
STREAMS = ['both', 'text']
WITH_VALUES = [
    'ace_rpe',
    'ace_rpe far',
    'ace_rpe learned',
    'ace_rpe shared',
    'ace_rpe value',
    'uniform',
]
WITHOUT_VALUES = ['ace_rpe query', 'ace_rpe key', 'ace_rpe bias']
HEADS = ('itc', 'itm', 'mlm')


@pytest.fixture
def pair(build):
    """A model without position, and one that takes its weights and has one; teachers too."""

    def make(position, streams):
        plain = build('none', heads=HEADS, streams=streams).eval()
        added = build(position, heads=HEADS, streams=streams).eval()
        result = added.load_state_dict(plain.state_dict(), strict=False)
        assert not result.unexpected_keys
        assert all(name.startswith('backbone.position.') for name in result.missing_keys)
        return plain, added

    return make


def logits(model, batch, **need):
    """Of matching and of words, and the fused images."""
    image = model.encode_image(batch.images)
    text = model.encode_text(batch.input_ids, batch.attention_mask)
    fused = model.backbone.fuse(image.tokens, text.tokens, **need)
    words = model.heads['mlm'](fused.text_tokens, model.backbone.text_encoder.word_embeddings)
    return model.heads['itm'](fused.text_tokens), words, fused.image_tokens


@torch.no_grad()
@pytest.mark.parametrize('streams', STREAMS)
@pytest.mark.parametrize('position', WITH_VALUES + WITHOUT_VALUES)
def test_the_logits_are_equal_to_the_last_bit(pair, batch, position, streams):
    plain, added = pair(position, streams)
    data = batch()
    # Eq. 12 needs the attention's probabilities, which PyTorch's fused kernel does not return. With
    # need_attentions the model without a position computes by the same operations.
    need = dict(need_attentions=position in WITH_VALUES)
    for actual, expected in zip(
        logits(added, data, **need), logits(plain, data, **need), strict=True
    ):
        assert torch.equal(actual, expected)


@torch.no_grad()
@pytest.mark.parametrize('streams', STREAMS)
@pytest.mark.parametrize('position', WITH_VALUES)
def test_with_the_fused_kernel_the_logits_differ_by_rounding_alone(pair, batch, position, streams):
    plain, added = pair(position, streams)
    data = batch()
    for actual, expected in zip(logits(added, data), logits(plain, data), strict=True):
        torch.testing.assert_close(actual, expected, atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize('streams', STREAMS)
@pytest.mark.parametrize('position', ['ace_rpe', 'ace_rpe bias'])
def test_the_added_weights_get_gradients_at_the_first_step(pair, batch, position, streams):
    _, added = pair(position, streams)
    torch.nn.init.normal_(added.heads['mlm'].transform.weight)
    sum(x.square().sum() for x in logits(added, batch())[:2]).backward()
    for weight in added.backbone.position.weight.values():
        assert not weight.any() and weight.grad.any()


@torch.no_grad()
def test_the_teacher_starts_equal_to_the_model(pair, batch):
    plain, added = pair('ace_rpe', 'both')
    data = batch()
    actual, expected = (
        model.teacher.module['backbone'].encode_text(data.input_ids, data.attention_mask).embedding
        for model in (added, plain)
    )
    assert torch.equal(actual, expected)
    for name, value in added.teacher.module['backbone'].position.named_parameters():
        assert torch.equal(value, added.backbone.position.get_parameter(name))


def shrink(config, vocabulary):
    """A retrieval config's model at a tiny size."""
    model = config.model
    model.data_preprocessor.tokenizer.pretrained = vocabulary
    backbone = model.backbone
    backbone.image_encoder.update(
        arch='vit_base_patch16_224',
        image_size=24,
        patch_size=8,
        embed_dim=WIDTH,
        num_heads=2,
        depth=2,
        pretrained=False,
    )
    backbone.text_encoder.update(
        pretrained=None,
        num_layers=1,
        config=dict(
            vocab_size=40,
            hidden_size=WIDTH,
            num_attention_heads=2,
            num_hidden_layers=1,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=8,
        ),
    )
    backbone.fusion.update(embed_dims=WIDTH, num_heads=2, depth=2)
    model.data_preprocessor.max_length = 8
    model.queue_length = 0
    return MODELS.build(model).eval()


@torch.no_grad()
@pytest.mark.parametrize(
    'before, after',
    [
        ('albef_4m', 'retrieval_coco_from_albef'),
        ('pretrain_shapes', 'retrieval_shapes_from_none'),
    ],
)
def test_fine_tuning_starts_from_the_outputs_of_the_pre_trained_model(
    before, after, vocabulary, batch
):
    before = Config.fromfile(f'configs/acerpe/{before}.py')
    before.merge_from_dict(
        {'model.backbone.position': dict(_delete_=True, type='NoPosition'), 'model.heads.mim': None}
    )
    plain = shrink(before, vocabulary)
    added = shrink(Config.fromfile(f'configs/acerpe/{after}.py'), vocabulary)
    assert type(added.backbone.position).__name__ == 'AnchorRelativePosition'
    assert type(plain.data_preprocessor.tokenizer) is type(added.data_preprocessor.tokenizer)
    result = added.load_state_dict(plain.state_dict(), strict=False)
    assert all(name.startswith('backbone.position.') for name in result.missing_keys)
    data = batch()
    outputs = []
    for model in (plain, added):
        image = model.encode_image(data.images)
        text = model.encode_text(data.input_ids, data.attention_mask)
        fused = model.backbone.fuse(image.tokens, text.tokens, need_attentions=True)
        outputs.append((image.embedding, text.embedding, model.heads['itm'](fused.text_tokens)))
    for expected, actual in zip(*outputs, strict=True):
        assert torch.equal(actual, expected)


def test_the_embedded_fine_tuning_names_the_last_checkpoint_of_its_pre_training():
    pretraining = Config.fromfile('configs/acerpe/pretrain_shapes.py')
    finetuning = Config.fromfile('configs/acerpe/retrieval_shapes_from_none.py')
    assert finetuning.load_from.endswith(f'/epoch_{pretraining.train_cfg.max_epochs}.pth')

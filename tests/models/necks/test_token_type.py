"""Token types: what they add and where."""

import pytest
import torch

from xmodal.engine.optim.constructor import NoDecayConstructor, undecayed_names
from xmodal.errors import ConfigError
from xmodal.models.backbones import BertTextEncoder, TimmImageEncoder, ViTImageEncoder
from xmodal.models.base import build_token_type, encode
from xmodal.models.necks import TokenTypeEmbedding
from xmodal.registry import MODELS

WIDTH = 8


def make_neck(**options):
    """Two channels, with values that can be checked by hand."""
    neck = TokenTypeEmbedding(2, layer_scale=0.5, **options)
    with torch.no_grad():
        neck.type_embeddings.copy_(torch.tensor([[2.0, 4.0], [-6.0, 8.0]]))
    return neck


def test_the_scaled_type_is_added_to_every_token():
    neck, tokens = make_neck(), torch.tensor([[[1.0, 10.0], [0.0, 0.0]]])
    with torch.no_grad():
        neck.gamma.copy_(torch.tensor([0.5, -0.25]))
    assert neck(tokens, 'text').tolist() == [[[2.0, 9.0], [1.0, -1.0]]]
    assert neck(tokens, 'image').tolist() == [[[-2.0, 8.0], [-3.0, -2.0]]]


def test_without_a_scale_the_type_is_added_unchanged():
    neck = TokenTypeEmbedding(2)
    tokens = torch.randn(3, 4, 2)
    expected = tokens + neck.type_embeddings[1]
    assert torch.equal(neck(tokens, 'image'), expected)


def test_each_type_may_have_a_scale():
    neck = make_neck(shared_scale=False)
    with torch.no_grad():
        neck.gamma.copy_(torch.tensor([[1.0, 1.0], [0.5, 0.25]]))
    zeros = torch.zeros(1, 1, 2)
    assert neck(zeros, 'text').tolist() == [[[2.0, 4.0]]]
    assert neck(zeros, 'image').tolist() == [[[-3.0, 2.0]]]


@pytest.mark.parametrize('width', [2, 768])
def test_it_has_two_vectors_and_a_scale(width):
    neck = TokenTypeEmbedding(width, layer_scale=1e-5)
    sizes = {name: parameter.numel() for name, parameter in neck.named_parameters()}
    assert sizes == {'type_embeddings': 2 * width, 'gamma': width}
    assert torch.equal(neck.gamma, torch.full((width,), 1e-5))


def test_at_the_start_almost_nothing_is_added():
    neck, tokens = TokenTypeEmbedding(768, layer_scale=1e-5), torch.randn(2, 3, 768)
    assert (neck(tokens, 'text') - tokens).abs().max() < 1e-5


def test_under_autocast_nothing_is_lost_to_bfloat16():
    neck, tokens = make_neck(), torch.ones(1, 1, 2, dtype=torch.bfloat16)
    with torch.no_grad():
        neck.gamma.fill_(1e-5)
    with torch.autocast('cpu', torch.bfloat16):
        actual = neck(tokens, 'text')
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual - 1, torch.tensor([[[2e-5, 4e-5]]]), atol=1e-7, rtol=0)


def test_another_position_is_an_error():
    with pytest.raises(ValueError, match="position='before', expected 'pre_encoder' or"):
        TokenTypeEmbedding(4, position='before')


def test_types_before_the_blocks_need_encoders_that_give_what_enters_them():
    types, encoders = (
        dict(type='TokenTypeEmbedding'),
        (TimmImageEncoder('resnet18', 32), text_encoder()),
    )
    assert build_token_type(types, WIDTH, *encoders).position == 'post_encoder'
    with pytest.raises(ConfigError, match="'pre_encoder' .*TimmImageEncoder keeps to itself: take"):
        build_token_type(types | dict(position='pre_encoder'), WIDTH, *encoders)


# encoders


def image_encoder(**options):
    return ViTImageEncoder(
        image_size=24, patch_size=8, embed_dim=WIDTH, num_heads=2, depth=2, **options
    ).eval()


def text_encoder():
    config = dict(
        vocab_size=20,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
    )
    return BertTextEncoder(config).eval()


def inputs_of(modality):
    if modality == 'image':
        return (torch.randn(2, 3, 24, 24),)
    return torch.randint(20, (2, 6)), torch.arange(6) < torch.tensor([[6], [4]])


ENCODERS = {'image': image_encoder, 'text': text_encoder}


@torch.no_grad()
@pytest.mark.parametrize('modality', ENCODERS)
def test_a_type_of_zeros_before_the_blocks_changes_nothing(modality):
    encoder, inputs = ENCODERS[modality](), inputs_of(modality)
    neck = TokenTypeEmbedding(WIDTH, 'pre_encoder')
    neck.type_embeddings.zero_()
    expected = encoder(*inputs).embeddings
    assert torch.equal(encode(encoder, neck, modality, *inputs).embeddings, expected)


@torch.no_grad()
def test_images_get_their_type_after_position_cls_and_first_norm():
    encoder = image_encoder(pre_norm=True)
    vit, neck = encoder.vit, TokenTypeEmbedding(WIDTH, 'pre_encoder')
    (images,) = inputs_of('image')
    patches = vit.patch_embed(images)
    cls_token = vit.cls_token.expand(2, -1, -1)
    inputs = vit.norm_pre(torch.cat([cls_token, patches], 1) + vit.pos_embed)
    expected = vit.norm(vit.blocks(inputs + neck.type_embeddings[1]))
    actual = encode(encoder, neck, 'image', images)
    torch.testing.assert_close(actual.embeddings, expected)


@torch.no_grad()
def test_texts_get_their_type_after_the_norm_of_berts_embeddings():
    encoder, neck = text_encoder(), TokenTypeEmbedding(WIDTH, 'pre_encoder')
    input_ids, mask = inputs_of('text')
    hidden = encoder.bert.embeddings(input_ids) + neck.type_embeddings[0]
    attention_bias = torch.where(mask[:, None, None], 0.0, -1e30).expand(-1, -1, 6, -1)
    for layer in encoder.bert.encoder.layer:
        output = layer(hidden, attention_mask=attention_bias)
        hidden = output[0] if isinstance(output, tuple) else output
    actual = encode(encoder, neck, 'text', input_ids, mask).embeddings
    torch.testing.assert_close(actual[mask], hidden[mask])
    plain = encoder(input_ids, mask).embeddings
    assert not plain.allclose(actual), 'the encoder keeps no type'


@torch.no_grad()
@pytest.mark.parametrize('modality', ENCODERS)
def test_after_the_encoder_every_token_gets_the_type(modality):
    encoder, inputs = ENCODERS[modality](), inputs_of(modality)
    neck = TokenTypeEmbedding(WIDTH, 'post_encoder')
    plain = encoder(*inputs)
    typed = encode(encoder, neck, modality, *inputs)
    type_embedding = neck.type_embeddings[('text', 'image').index(modality)]
    torch.testing.assert_close(typed.embeddings, plain.embeddings + type_embedding)
    assert typed.grid_size == plain.grid_size


# the ALBEF family


def with_types(config, **token_type):
    config['backbone']['token_type'] = dict(type='TokenTypeEmbedding', **token_type)
    return config


def rebuild(config, like):
    """The model of a config with the weights of another."""
    model = MODELS.build(config)
    model.load_state_dict(like.state_dict(), strict=False)
    return model.eval()


@torch.no_grad()
def test_at_the_first_step_scaled_types_change_almost_nothing(config, batch):
    plain = MODELS.build(config()).eval()
    post = dict(position='post_encoder', layer_scale=1e-5)
    typed = rebuild(with_types(config(), **post), plain)
    pre = rebuild(with_types(config(), position='pre_encoder'), plain)
    pre.backbone.token_type.type_embeddings.normal_()
    data = batch()
    embeddings = [
        torch.cat([x.embedding for x in model.tensor(data)]) for model in (plain, typed, pre)
    ]
    assert (embeddings[1] - embeddings[0]).abs().max() < 1e-5
    assert (embeddings[2] - embeddings[0]).abs().max() > 1e-3


@pytest.mark.parametrize('position', ['pre_encoder', 'post_encoder'])
def test_every_head_of_the_pretrainer_trains_the_types(config, batch, position):
    for head in ('itm', 'mlm', 'mim'):
        heads = ['itc', head] if head == 'itm' else [head]
        model = MODELS.build(with_types(config(heads=heads), position=position, layer_scale=1e-5))
        if head == 'mim':
            model.heads['mim'].source = 'fusion'
        losses = model(batch(), mode='loss')
        losses[f'loss_{head}'].backward()
        for parameter in model.backbone.token_type.parameters():
            assert parameter.grad.abs().sum(1 if parameter.ndim == 2 else 0).all(), head


# weight decay


def test_the_scale_is_never_decayed_and_the_types_are_by_an_option():
    for shared in (True, False):
        neck = TokenTypeEmbedding(4, layer_scale=1e-5, shared_scale=shared)
        for decay in (True, False):
            undecayed = undecayed_names(neck, decay)
            assert undecayed == ({'gamma'} if decay else {'gamma', 'type_embeddings'})


@pytest.mark.parametrize('decay', [True, False])
def test_the_option_reaches_the_optimizer(decay):
    neck = TokenTypeEmbedding(4, layer_scale=1e-5)
    optimizer = dict(type='AdamW', lr=1e-3, weight_decay=0.1)
    build = NoDecayConstructor(dict(optimizer=optimizer), dict(decay_token_types=decay))
    decays = {
        id(parameter): group['weight_decay']
        for group in build(neck).optimizer.param_groups
        for parameter in group['params']
    }
    assert decays == {id(neck.gamma): 0.0, id(neck.type_embeddings): 0.1 if decay else 0.0}


def test_another_option_is_an_error():
    with pytest.raises(ValueError, match=r"has \['norm_decay_mult'\], but NoDecayConstructor"):
        NoDecayConstructor(dict(optimizer=dict(type='AdamW')), dict(norm_decay_mult=0.0))

"""Token types: what they add, where, and that encoders do all they did before."""

import pytest
import torch

from xmodal.engine.optim.constructor import NoDecayConstructor, leaves_undecayed
from xmodal.models.backbones import BertTextEncoder, ViTImageEncoder
from xmodal.models.necks import TokenTypeEmbedding
from xmodal.models.necks.token_type import encode_typed
from xmodal.registry import MODELS

WIDTH = 8


def planted(**options):
    """Two channels, with numbers that can be followed by hand."""
    neck = TokenTypeEmbedding(2, layer_scale=0.5, **options)
    with torch.no_grad():
        neck.type_embeddings.copy_(torch.tensor([[2.0, 4.0], [-6.0, 8.0]]))
    return neck


def test_two_channels_by_hand():
    neck, tokens = planted(), torch.tensor([[[1.0, 10.0], [0.0, 0.0]]])
    with torch.no_grad():
        neck.gamma.copy_(torch.tensor([0.5, -0.25]))
    assert neck(tokens, 'text').tolist() == [[[2.0, 9.0], [1.0, -1.0]]]
    assert neck(tokens, 'image').tolist() == [[[-2.0, 8.0], [-3.0, -2.0]]]


def test_without_a_scale_the_type_is_added_as_it_is():
    neck = TokenTypeEmbedding(2)
    tokens = torch.randn(3, 4, 2)
    expected = tokens + neck.type_embeddings[1]
    assert torch.equal(neck(tokens, 'image'), expected)


def test_types_may_have_a_scale_each():
    neck = planted(shared_scale=False)
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


def test_at_the_start_next_to_nothing_is_added():
    neck, tokens = TokenTypeEmbedding(768, layer_scale=1e-5), torch.randn(2, 3, 768)
    assert (neck(tokens, 'text') - tokens).abs().max() < 1e-5


def test_under_autocast_nothing_is_lost_to_bfloat16():
    neck, tokens = planted(), torch.ones(1, 1, 2, dtype=torch.bfloat16)
    with torch.no_grad():
        neck.gamma.fill_(1e-5)
    with torch.autocast('cpu', torch.bfloat16):
        found = neck(tokens, 'text')
    assert found.dtype == torch.float32
    torch.testing.assert_close(found - 1, torch.tensor([[[2e-5, 4e-5]]]), atol=1e-7, rtol=0)


def test_another_position_is_an_error():
    with pytest.raises(ValueError, match="position='before', expected 'pre_encoder' or"):
        TokenTypeEmbedding(4, position='before')


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
def test_before_the_blocks_nothing_that_the_encoder_does_is_skipped(modality):
    encoder, inputs = ENCODERS[modality](), inputs_of(modality)
    neck = TokenTypeEmbedding(WIDTH, 'pre_encoder')
    neck.type_embeddings.zero_()
    expected = encoder(*inputs).embeddings
    assert torch.equal(encode_typed(encoder, neck, modality, *inputs).embeddings, expected)


@torch.no_grad()
def test_images_get_their_type_after_position_cls_and_first_norm():
    encoder = image_encoder(pre_norm=True)
    vit, neck = encoder.vit, TokenTypeEmbedding(WIDTH, 'pre_encoder')
    (images,) = inputs_of('image')
    patches = vit.patch_embed(images)
    cls_token = vit.cls_token.expand(2, -1, -1)
    entering = vit.norm_pre(torch.cat([cls_token, patches], 1) + vit.pos_embed)
    expected = vit.norm(vit.blocks(entering + neck.type_embeddings[1]))
    found = encode_typed(encoder, neck, 'image', images)
    torch.testing.assert_close(found.embeddings, expected)


@torch.no_grad()
def test_texts_get_their_type_after_the_norm_of_berts_embeddings():
    encoder, neck = text_encoder(), TokenTypeEmbedding(WIDTH, 'pre_encoder')
    input_ids, mask = inputs_of('text')
    hidden = encoder.bert.embeddings(input_ids) + neck.type_embeddings[0]
    blocked = torch.where(mask[:, None, None], 0.0, -1e30).expand(-1, -1, 6, -1)
    for layer in encoder.bert.encoder.layer:
        output = layer(hidden, attention_mask=blocked)
        hidden = output[0] if isinstance(output, tuple) else output
    found = encode_typed(encoder, neck, 'text', input_ids, mask).embeddings
    torch.testing.assert_close(found[mask], hidden[mask])
    again = encoder(input_ids, mask).embeddings
    assert not again.allclose(found), 'the type stayed in the encoder'


@torch.no_grad()
@pytest.mark.parametrize('modality', ENCODERS)
def test_after_the_encoder_every_token_gets_the_type(modality):
    encoder, inputs = ENCODERS[modality](), inputs_of(modality)
    neck = TokenTypeEmbedding(WIDTH, 'post_encoder')
    plain = encoder(*inputs)
    typed = encode_typed(encoder, neck, modality, *inputs)
    added = neck.type_embeddings[('text', 'image').index(modality)]
    torch.testing.assert_close(typed.embeddings, plain.embeddings + added)
    assert typed.grid_size == plain.grid_size


# the models of ACE-RPE


def with_types(config, **token_type):
    config['backbone']['token_type'] = dict(type='TokenTypeEmbedding', **token_type)
    return config


def rebuild(config, like):
    """The model of a config with the weights of another."""
    model = MODELS.build(config)
    model.load_state_dict(like.state_dict(), strict=False)
    return model.eval()


@torch.no_grad()
def test_a_fusion_models_first_step_is_the_one_without_types(config, batch):
    plain = MODELS.build(config()).eval()
    post = dict(position='post_encoder', layer_scale=1e-5)
    typed = rebuild(with_types(config(), **post), plain)
    pre = rebuild(with_types(config(), position='pre_encoder'), plain)
    pre.backbone.token_type.type_embeddings.normal_()
    data = batch()
    vectors = [
        torch.cat([x.embedding for x in model.tensor(data)]) for model in (plain, typed, pre)
    ]
    assert (vectors[1] - vectors[0]).abs().max() < 1e-5
    assert (vectors[2] - vectors[0]).abs().max() > 1e-3


@pytest.mark.parametrize('position', ['pre_encoder', 'post_encoder'])
def test_all_heads_of_a_fusion_model_train_the_types(config, batch, position):
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


def test_the_scale_is_never_decayed_and_the_types_by_option():
    for shared in (True, False):
        neck = TokenTypeEmbedding(4, layer_scale=1e-5, shared_scale=shared)
        for decay in (True, False):
            kept = {n for n, p in neck.named_parameters() if leaves_undecayed(n, p, decay)}
            assert kept == ({'gamma'} if decay else {'gamma', 'type_embeddings'})


@pytest.mark.parametrize('decay', [True, False])
def test_the_optimizer_takes_the_option(decay):
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
    with pytest.raises(ValueError, match=r"has \['norm_decay_mult'\], and NoDecayConstructor"):
        NoDecayConstructor(dict(optimizer=dict(type='AdamW')), dict(norm_decay_mult=0.0))

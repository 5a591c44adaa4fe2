"""The image and text embeddings of the ALBEF family."""

import json

import pytest
import torch
from torch.nn.functional import gelu, layer_norm, normalize

from xmodal.errors import ConfigError
from xmodal.registry import MODELS
from xmodal.structures import ImageTextBatch, Regions

POOLINGS = {
    'TEMDE': dict(type='TEMDE', partitions=3, centroids=4, inner_dims=5),
    'MeanPooling': dict(type='MeanPooling'),
    'MaxPooling': dict(type='MaxPooling'),
    'GPOPooling': dict(type='GPOPooling'),
}
CONFIGS = ['pretrain_shapes_temde.py', 'retrieval_shapes_temde.py']


@pytest.fixture
def build_pooled(config):
    """Builds a tiny pre-trainer with a pooling."""

    def make(pooling, **options):
        options = config('none', ('itc', 'itm', 'mlm', 'mim'), **options)
        options['backbone'].update(image_pooling=pooling, text_pooling=pooling)
        return MODELS.build(options)

    return make


def test_a_pooling_without_a_gradient_is_refused(build_pooled):
    with pytest.raises(ValueError, match="pooling.type='EMDE' .*stops the gradient.*use 'TEMDE'"):
        build_pooled(dict(type='EMDE', partitions=2, bits=2))


@torch.no_grad()
def test_by_default_embeddings_are_projections_of_cls_without_a_pooling(build, batch):
    backbone, data = build().backbone.eval(), batch()
    assert not [name for name in backbone.state_dict() if 'pooling' in name]
    for encoded, projection in (
        (backbone.encode_image(data.images), backbone.image_proj),
        (backbone.encode_text(data.input_ids, data.attention_mask), backbone.text_proj),
    ):
        expected = normalize(projection(encoded.tokens.embeddings[:, 0]), dim=-1)
        torch.testing.assert_close(encoded.embedding, expected)


@torch.no_grad()
@pytest.mark.parametrize('name', list(POOLINGS))
def test_with_a_pooling_embeddings_are_projections_of_the_pooled_tokens_without_cls(
    build_pooled, batch, name
):
    backbone, data = build_pooled(POOLINGS[name]).backbone.eval(), batch()
    image = backbone.encode_image(data.images)
    text = backbone.encode_text(data.input_ids, data.attention_mask)
    for row in range(4):
        words = text.tokens.embeddings[row, data.attention_mask[row]][1:]
        patches = image.tokens.embeddings[row, 1:]
        for encoded, tokens, pooling, projection in (
            (text, words, backbone.text_pooling, backbone.text_proj),
            (image, patches, backbone.image_pooling, backbone.image_proj),
        ):
            expected = normalize(projection(pooling(tokens[None])), dim=-1)[0]
            torch.testing.assert_close(encoded.embedding[row], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('momentum', [0.9, None])
def test_the_contrastive_loss_trains_the_poolings_of_both_modalities(build_pooled, batch, momentum):
    model = build_pooled(POOLINGS['TEMDE'], momentum=momentum)
    losses = model.loss(batch())
    losses['loss_itc'].backward()
    for pooling in (model.backbone.image_pooling, model.backbone.text_pooling):
        for name, parameter in pooling.named_parameters():
            assert parameter.grad.isfinite().all() and parameter.grad.any(), name
    state = model.state_dict()
    assert not state['backbone.image_pooling.l1.weight'].equal(
        state['backbone.text_pooling.l1.weight']
    )


@pytest.mark.parametrize('file', CONFIGS)
def test_the_configs_of_the_embedded_world_build_it(shrink, file):
    config = shrink(f'configs/acerpe/{file}')
    backbone = MODELS.build(config.model).backbone
    assert backbone.text_pooling.out_dims == backbone.text_proj.in_features == 16 * 8
    assert backbone.image_pooling.centroids.numel() == 16 * 8 * 8


@pytest.fixture
def with_regions(config):
    """Makes the config of a tiny pre-trainer of regions, 6 wide, and of tokens, 32 wide."""

    def make(heads=('itc', 'itm')):
        options = config('none', heads, momentum=None, queue_length=0)
        options['backbone'].update(
            image_encoder=dict(type='RegionEncoder', feature_dims=6, embed_dims=None),
            image_adapter=dict(type='TokenAdapter', dropout=0.5),
            image_pooling=dict(type='MeanMaxPooling'),
            text_pooling=dict(type='MeanPooling'),
            hidden_dims=5,
            dropout=0.5,
        )
        return options

    return make


def regions(counts):
    """Regions of made-up images, with padding up to the largest count."""
    features = torch.randn(len(counts), max(counts), 6)
    mask = torch.arange(max(counts)) < torch.tensor(counts)[:, None]
    return Regions(features, mask, torch.rand(len(counts), max(counts), 4))


@torch.no_grad()
def test_regions_are_pooled_in_their_own_width_and_fused_in_that_of_the_fusion_encoder(
    with_regions,
):
    backbone = MODELS.build(with_regions()).backbone.eval()
    images = regions([3, 5])
    encoded = backbone.encode_image(images)
    proj, adapter = backbone.image_proj, backbone.image_adapter
    for row, count in enumerate([3, 5]):
        real = images.features[row, :count]
        pooled = layer_norm(torch.cat([real.mean(0), real.max(0).values]), (12,))
        first, last = proj.feed_forward[0], proj.feed_forward[3]
        vector = proj.linear(pooled) + last(gelu(first(pooled)))
        torch.testing.assert_close(encoded.embedding[row], vector / vector.norm())
        tokens = layer_norm(adapter.linear(layer_norm(real, (6,))), (32,))
        torch.testing.assert_close(encoded.tokens.embeddings[row, :count], tokens)


@pytest.mark.parametrize(
    'encoder',
    [
        dict(type='RegionEncoder', feature_dims=6, embed_dims=32),
        # Without layers no region sees another.
        dict(type='ObjectEncoder', feature_dims=6, embed_dims=32, depth=0, num_heads=2),
    ],
    ids=lambda encoder: encoder['type'],
)
def test_every_region_is_part_of_the_embedding(with_regions, encoder):
    config = with_regions()
    config['backbone'].update(
        image_encoder=encoder, image_adapter=None, image_pooling=dict(type='MeanPooling')
    )
    backbone = MODELS.build(config).backbone.eval()
    images = regions([1, 4])
    features = images.features.requires_grad_()
    backbone.encode_image(images).embedding[:, 0].sum().backward()
    real = features.grad.abs().sum(-1) > 0
    assert real.equal(images.attention_mask)


def test_an_encoder_without_cls_needs_a_pooling(with_regions):
    config = with_regions()
    config['backbone']['image_pooling'] = None
    with pytest.raises(ValueError, match='RegionEncoder has no .CLS.*set backbone.image_pooling'):
        MODELS.build(config)


@torch.no_grad()
def test_words_are_pooled_before_their_adapter_and_fused_after_it(with_regions, batch):
    config = with_regions()
    config['backbone']['text_adapter'] = dict(type='TokenAdapter', hidden_dims=7)
    backbone = MODELS.build(config).backbone.eval()
    data = batch(size=2)
    encoded = backbone.encode_text(data.input_ids, data.attention_mask)
    words = backbone.text_encoder(data.input_ids, data.attention_mask).embeddings
    normed = layer_norm(words, (32,))
    adapter, proj = backbone.text_adapter, backbone.text_proj
    first, last = adapter.feed_forward[0], adapter.feed_forward[3]
    tokens = layer_norm(adapter.linear(normed) + last(gelu(first(normed))), (32,))
    torch.testing.assert_close(encoded.tokens.embeddings, tokens)
    for row, count in enumerate(data.attention_mask.sum(1).tolist()):
        vector = proj(words[row, 1:count].mean(0))
        torch.testing.assert_close(encoded.embedding[row], vector / vector.norm())


@torch.no_grad()
def test_words_of_the_first_layers_are_fused_and_the_embedding_is_of_all(with_regions, batch):
    config = with_regions()
    config['backbone'].update(word_layers=0, text_adapter=dict(type='TokenAdapter'))
    backbone = MODELS.build(config).backbone.eval()
    words = batch(size=2)[1:3]
    encoded = backbone.encode_text(*words)
    expected = backbone.text_adapter(backbone.text_encoder.embed(*words).embeddings)
    torch.testing.assert_close(encoded.tokens.embeddings, expected)
    torch.testing.assert_close(backbone.text_tokens(*words).embeddings, expected)
    backbone.word_layers = None
    assert encoded.embedding.equal(backbone.encode_text(*words).embedding)


@pytest.mark.parametrize('count', [-1, 9])
def test_word_layers_that_the_text_encoder_lacks_are_an_error(with_regions, count):
    config = with_regions()
    config['backbone']['word_layers'] = count
    with pytest.raises(ConfigError, match=f'word_layers={count}, and the text encoder has .* 0 to'):
        MODELS.build(config)


def test_word_layers_of_another_encoder_are_an_error(with_regions):
    config = with_regions()
    bert = dict(model_type='bert', vocab_size=40, hidden_size=32, num_attention_heads=2)
    config['backbone'].update(
        word_layers=1, text_encoder=dict(type='TransformersTextEncoder', config=bert)
    )
    with pytest.raises(ConfigError, match='needs a BertTextEncoder .*found TransformersTextEncode'):
        MODELS.build(config)


def test_frozen_projections_keep_their_vectors_while_matching_is_trained(with_regions, batch):
    config = with_regions()
    config['backbone']['frozen'] = ['image_proj', 'text_proj']
    model = MODELS.build(config).train()
    data = batch()._replace(images=regions([4, 4, 3, 2]))
    vectors = model.encode_image(data.images).embedding
    assert vectors.equal(model.encode_image(data.images).embedding)  # no dropout
    assert not vectors.requires_grad
    model(data, mode='loss')['loss_itm'].backward()
    assert model.backbone.image_adapter.linear.weight.grad.any()
    assert model.backbone.image_proj.linear.weight.grad is None


@pytest.mark.parametrize(('heads', 'calls'), [(('itc',), 0), (('itc', 'itm'), 1)])
def test_tokens_are_adapted_only_for_heads_that_read_them(with_regions, batch, heads, calls):
    model = MODELS.build(with_regions(heads)).train()
    adapted = []
    model.backbone.image_adapter.register_forward_hook(lambda *_: adapted.append(1))
    model(batch()._replace(images=regions([4, 4, 3, 2])), mode='loss')
    assert len(adapted) == calls


def test_regions_without_a_pooling_are_an_error(with_regions):
    config = with_regions()
    config['backbone']['image_pooling'] = None
    with pytest.raises(ValueError, match=r'RegionEncoder has no \[CLS\].*set backbone.image_pool'):
        MODELS.build(config)


def test_the_fusion_encoder_of_another_family_is_an_error(config):
    of_lxmert = config()
    fusion = dict(type='CrossModalityEncoder', depth=2, embed_dims=32, num_heads=2)
    of_lxmert['backbone']['fusion'] = fusion
    message = "backbone.fusion.type='CrossModalityEncoder', expected a FusionEncoder"
    with pytest.raises(ConfigError, match=message):
        MODELS.build(of_lxmert)


def test_token_types_beside_an_adapter_are_an_error(with_regions):
    config = with_regions()
    config['backbone']['token_type'] = dict(type='TokenTypeEmbedding')
    with pytest.raises(ValueError, match='token_type has one width for image and text'):
        MODELS.build(config)


def test_the_anchor_loss_of_regions_trains_the_adapters(with_regions, batch):
    model = MODELS.build(with_regions(('itc', 'ace'))).train()
    values = model.loss(batch()._replace(images=regions([4, 4, 3, 2])))
    values['loss_ace'].backward()
    assert model.backbone.image_adapter.linear.weight.grad.any()


def test_anchors_of_regions_are_counted_from_the_first_region_on(with_regions, batch):
    config = with_regions()
    config['backbone']['position'] = dict(type='AnchorRelativePosition', groups=2)
    data = batch()._replace(images=regions([4, 4, 3, 2]))
    model = MODELS.build(config)
    model.backbone.position.delta = -1.1
    values = model.loss(data)
    # Every pair of a region and a word is above δ, and padding would count as a pair that is not.
    assert values['anchor_share_matched'] == values['anchor_share_mismatched'] == 1


def test_regions_and_a_gru_train_by_itc_alone(tmp_path):
    names = ['<pad>', '<start>', '<end>', '<unk>', 'a', 'red', 'dog']
    word_ids = {name: word_id for word_id, name in enumerate(names)}
    file = tmp_path / 'vocab.json'
    file.write_text(json.dumps({'word2idx': word_ids}))
    pooling = dict(type='MeanPooling')
    model = MODELS.build(
        dict(
            type='AlbefPretrainer',
            data_preprocessor=dict(
                type='RegionTextPreprocessor',
                tokenizer=dict(vocabulary=str(tmp_path / 'vocab.json')),
            ),
            backbone=dict(
                image_encoder=dict(type='RegionEncoder', feature_dims=7, embed_dims=8),
                text_encoder=dict(type='GruTextEncoder', vocab_size=7, word_dims=5, embed_dims=8),
                fusion=dict(type='FusionEncoder', embed_dims=8, num_heads=2, depth=1),
                position=dict(type='none'),
                proj_dims=4,
                image_pooling=pooling,
                text_pooling=pooling,
            ),
            heads=dict(itc=dict(type='ITCHead')),
        )
    )
    ids = torch.arange(3)
    batch = ImageTextBatch(
        images=Regions(torch.randn(3, 4, 7), torch.ones(3, 4, dtype=torch.bool)),
        input_ids=torch.randint(4, 7, (3, 5)),
        attention_mask=torch.ones(3, 5, dtype=torch.bool),
        image_ids=ids,
        text_ids=ids,
        text_image_ids=ids,
    )
    assert model(batch, mode='loss')['loss_itc'].isfinite()

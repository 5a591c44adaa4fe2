"""What the contrastive vectors are made of."""

import pytest
import torch
from torch.nn.functional import normalize

from xmodal.registry import MODELS

POOLINGS = {
    'TEmde': dict(type='TEmde', partitions=3, centroids=4, inner_dims=5),
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
        options['network']['vector_pooling'] = pooling
        return MODELS.build(options)

    return make


def test_a_pooling_without_a_gradient_is_refused(build_pooled):
    with pytest.raises(ValueError, match='vector_pooling=Emde, .*no gradient.*use TEmde'):
        build_pooled(dict(type='Emde', partitions=2, bits=2))


@torch.no_grad()
def test_by_default_vectors_are_projections_of_cls_and_there_are_no_weights_of_a_pooling(
    build, batch
):
    network, one = build().network.eval(), batch()
    assert not [name for name in network.state_dict() if 'pooling' in name]
    for encoded, projection in (
        (network.encode_image(one.images), network.image_projection),
        (network.encode_text(one.input_ids, one.attention_mask), network.text_projection),
    ):
        expected = normalize(projection(encoded.tokens.embeddings[:, 0]), dim=-1)
        torch.testing.assert_close(encoded.vector, expected)


@torch.no_grad()
@pytest.mark.parametrize('name', list(POOLINGS))
def test_vectors_are_projections_of_the_real_tokens_without_cls(build_pooled, batch, name):
    network, one = build_pooled(POOLINGS[name]).network.eval(), batch()
    image = network.encode_image(one.images)
    text = network.encode_text(one.input_ids, one.attention_mask)
    for row in range(4):
        words = text.tokens.embeddings[row, one.attention_mask[row]][1:]
        patches = image.tokens.embeddings[row, 1:]
        for found, tokens, pooling, projection in (
            (text, words, network.text_pooling, network.text_projection),
            (image, patches, network.image_pooling, network.image_projection),
        ):
            expected = normalize(projection(pooling(tokens[None])), dim=-1)[0]
            torch.testing.assert_close(found.vector[row], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('momentum', [0.9, None])
def test_contrast_trains_the_poolings_of_both_modalities(build_pooled, batch, momentum):
    model = build_pooled(POOLINGS['TEmde'], momentum=momentum)
    losses = model.loss(batch())
    losses['loss_itc'].backward()
    for pooling in (model.network.image_pooling, model.network.text_pooling):
        for name, parameter in pooling.named_parameters():
            assert parameter.grad.isfinite().all() and parameter.grad.any(), name
    state = model.state_dict()
    assert not state['network.image_pooling.l1.weight'].equal(
        state['network.text_pooling.l1.weight']
    )


@pytest.mark.parametrize('file', CONFIGS)
def test_the_configs_of_the_embedded_world_build_it(shrink, batch, file):
    config = shrink(f'configs/acerpe/{file}')
    network = MODELS.build(config.model).network
    assert network.text_pooling.out_dims == network.text_projection.in_features == 16 * 8
    assert network.image_pooling.centroids.numel() == 16 * 8 * 8

"""Image encoders of timm, compared with timm's own outputs, in the families that take pixels."""

import pytest
import timm
import torch

from xmodal.errors import ConfigError
from xmodal.models.backbones import TimmImageEncoder
from xmodal.registry import MODELS

VIT = dict(embed_dim=32, depth=2, num_heads=2)
KINDS = {  # of each kind: what timm makes small, and its image size
    'cnn': ('test_efficientnet', 64, {}),
    'convnext': ('test_convnext', 64, {}),
    'hybrid': ('test_nfnet', 64, {}),
    'vit': ('test_vit', 64, {}),
    'clip': ('vit_base_patch16_clip_224', 48, VIT),
    'siglip': ('vit_base_patch16_siglip_224', 48, VIT),
    'dinov2': ('vit_small_patch14_reg4_dinov2', 42, VIT),
}


def make(kind, **more):
    arch, size, overrides = KINDS[kind]
    return TimmImageEncoder(arch, size, **overrides, **more)


@pytest.mark.parametrize('kind', KINDS)
def test_tokens_are_timms_features_after_what_its_classifier_gets(kind):
    arch, size, overrides = KINDS[kind]
    torch.manual_seed(0)
    encoder = make(kind, embed_dims=12).eval()
    native = overrides | (dict(img_size=size) if 'vit' in arch else {})
    model = timm.create_model(arch, num_classes=0, **native).eval()
    model.load_state_dict(encoder.grid.model.state_dict())
    images = torch.randn(2, 3, size, size)
    features = model.forward_features(images)
    summary = model.forward_head(features, pre_logits=True)
    if features.ndim == 3:
        cells = features[:, model.num_prefix_tokens :]
    else:
        cells = features.flatten(2).transpose(1, 2)
    found = encoder(images)
    rows, columns = found.grid_size
    assert rows * columns == cells.shape[1] and rows == columns
    expected = [encoder.summary_projection(summary)[:, None], encoder.cell_projection(cells)]
    torch.testing.assert_close(found.embeddings, torch.cat(expected, 1))
    found.embeddings.square().sum().backward()
    without = [n for n, x in encoder.grid.named_parameters() if x.grad is None]
    assert without == [] or kind == 'cnn', without


def test_a_stage_and_a_stride_are_chosen():
    info = timm.create_model('test_resnet').feature_info
    encoder = TimmImageEncoder('test_resnet', 64, stage=2).eval()
    tokens = encoder(torch.randn(1, 3, 64, 64))
    side = 64 // info[2]['reduction']
    assert tokens.embeddings.shape == (1, 1 + side**2, info[2]['num_chs'])
    torch.testing.assert_close(tokens.embeddings[:, 0], tokens.embeddings[:, 1:].mean(1))
    whole, finer = (
        TimmImageEncoder('test_resnet', 64, **stride).eval()(torch.randn(1, 3, 64, 64)).grid_size
        for stride in ({}, dict(output_stride=16))
    )
    assert whole == (2, 2) and finer == (4, 4)


def test_frozen_it_keeps_its_statistics_and_nothing_for_a_backward_pass():
    encoder = MODELS.build(
        dict(type='TimmImageEncoder', arch='test_efficientnet', image_size=64, embed_dims=8)
        | dict(frozen=['grid'])
    )
    model = MODELS.build(
        dict(
            type='MultiLabelClassifier', image_encoder=dict(type='RegionEncoder'), num_tags=2,
            data_preprocessor=dict(type='BaseDataPreprocessor'),
        )
    )  # fmt: skip
    model.image_encoder = encoder
    model.train()
    before = {name: x.clone() for name, x in encoder.grid.model.named_buffers()}
    assert before
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.nbytes), lambda x: x):
        features = encoder.grid(torch.randn(2, 3, 64, 64))
    assert sum(kept) == 0 and not features.requires_grad
    for name, x in encoder.grid.model.named_buffers():
        assert torch.equal(x, before[name]), name
    assert encoder(torch.randn(2, 3, 64, 64)).embeddings.requires_grad


def test_rates_are_those_of_timms_layers():
    encoder = make('vit', embed_dims=8)
    distances = encoder.layer_distances()
    assert distances.keys() == {name for name, _ in encoder.named_parameters()}
    blocks = len(encoder.grid.model.blocks)
    for name, steps in distances.items():
        rest = name.removeprefix('grid.model.')
        if rest.startswith('blocks.'):
            assert steps == blocks - int(rest.split('.')[1]), name
        elif rest.startswith(('cls_token', 'pos_embed', 'patch_embed')):
            assert steps == blocks + 1, name
        else:
            assert steps == 0, name
    assert len(set(make('cnn').layer_distances().values())) > 3


def test_layers_that_timm_does_not_know_have_no_rates():
    encoder = TimmImageEncoder('poolformer_s12', 32)
    with pytest.raises(ConfigError, match=r"arch='poolformer_s12', which layer_decay needs: leave"):
        encoder.layer_distances()


def test_weights_of_another_size_of_images_are_resampled(tmp_path):
    torch.manual_seed(0)
    whole = timm.create_model('test_vit', img_size=96)
    native = timm.create_model('test_vit')
    torch.save(native.state_dict(), tmp_path / 'w.pth')
    encoder = TimmImageEncoder('test_vit', 96, pretrained=str(tmp_path / 'w.pth'))
    encoder.init_weights()
    found, source = encoder.grid.model.state_dict(), native.state_dict()
    assert found['pos_embed'].shape == whole.pos_embed.shape != source['pos_embed'].shape
    for name in found.keys() - {'pos_embed'}:
        assert torch.equal(found[name], source[name]), name
    constant = torch.ones_like(source['pos_embed'])
    torch.save(source | {'pos_embed': constant}, tmp_path / 'w.pth')
    encoder.init_weights()
    torch.testing.assert_close(
        encoder.grid.model.pos_embed.data, torch.ones_like(whole.pos_embed), atol=1e-4, rtol=0
    )


def test_cells_and_summary_of_different_widths_need_one():
    with pytest.raises(ValueError, match=r"cells of '.*set image_encoder\.embed_dims"):
        TimmImageEncoder('mobilenetv3_small_050', 64)
    with pytest.raises(ValueError, match='images are 32 x 32 pixels'):
        make('cnn')(torch.randn(1, 3, 32, 32))


def test_the_fusion_model_pre_trains_with_it(config, batch):
    tiny = config(heads=('itc', 'ace', 'itm', 'mlm'))
    width = tiny['backbone']['fusion']['embed_dims']
    tiny['backbone']['image_encoder'] = dict(
        type='TimmImageEncoder', arch='test_convnext', image_size=24, embed_dims=width, stage=0
    )
    model = MODELS.build(tiny).train()
    losses = model.loss(batch())
    sum(x for name, x in losses.items() if 'loss' in name).backward()
    assert model.backbone.image_encoder.grid.model.stem[0].weight.grad.abs().sum() > 0

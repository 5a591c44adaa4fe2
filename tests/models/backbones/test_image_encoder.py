"""The image encoder."""

from copy import deepcopy

import pytest
import timm
import torch
from torch.nn.functional import interpolate

from xmodal.models.backbones import ViTImageEncoder

TINY = dict(patch_size=8, embed_dim=16, num_heads=2)


def make_encoder(image_size=24, **options):
    return ViTImageEncoder(image_size=image_size, **{'depth': 2, **TINY, **options})


@torch.no_grad()
def test_it_is_the_first_blocks_of_a_timm_vit():
    encoder = make_encoder().eval()
    whole = timm.create_model(
        'vit_base_patch16_224', img_size=24, num_classes=0, global_pool='', depth=4, **TINY
    ).eval()
    encoder.vit.load_state_dict(
        {name: whole.state_dict()[name] for name in encoder.vit.state_dict()}
    )
    images = torch.randn(2, 3, 24, 24)
    [(blocks, _)] = whole.get_intermediate_layers(images, [1], return_prefix_tokens=True)
    expected = whole.norm(blocks)
    actual = encoder(images)
    torch.testing.assert_close(actual.embeddings[:, 1:], expected)
    assert actual.grid_size == (3, 3)
    assert actual.attention_mask is None


@torch.no_grad()
@pytest.mark.parametrize('options', [{}, dict(pre_norm=True), dict(conv_stem=True)])
def test_outputs_equal_those_of_timm(options):
    encoder = make_encoder(**options).eval()
    images = torch.randn(2, 3, 24, 24)
    expected = encoder.vit.forward_features(images)
    torch.testing.assert_close(encoder(images).embeddings, expected, atol=1e-6, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize('options', [{}, dict(post_norm=True), dict(conv_stem=True)])
def test_embed_and_encode_are_the_two_steps_of_forward(options):
    encoder, token = make_encoder(**options).eval(), torch.randn(16)
    images, mask = torch.randn(2, 3, 24, 24), torch.rand(2, 9) < 0.5
    for inputs in ((images,), (images, mask, token)):
        embedded = encoder.embed(*inputs)
        assert embedded.embeddings.shape == (2, 10, 16) and embedded.grid_size == (3, 3)
        assert encoder.encode(embedded).embeddings.equal(encoder(*inputs).embeddings)


def test_images_of_another_size_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r'32 x 24 pixels, and .*image_size=24: .*ResizeImage'):
        make_encoder()(torch.randn(1, 3, 32, 24))


@torch.no_grad()
def test_masked_patches_are_not_seen():
    encoder, token = make_encoder().eval(), torch.randn(16)
    mask = torch.zeros(1, 9, dtype=torch.bool)
    mask[0, 4] = True
    images = torch.randn(1, 3, 24, 24)
    repainted = images.clone()
    repainted[:, :, 8:16, 8:16] = 0
    actual, expected = (encoder(x, mask, token).embeddings for x in (images, repainted))
    torch.testing.assert_close(actual, expected)
    assert not actual.allclose(encoder(images).embeddings)


@torch.no_grad()
def test_patches_are_masked_where_timm_keeps_them_as_a_grid():
    plain, dynamic = make_encoder().eval(), make_encoder(dynamic_img_size=True).eval()
    dynamic.load_state_dict(plain.state_dict())
    inputs = torch.randn(2, 3, 24, 24), torch.rand(2, 9) < 0.5, torch.randn(16)
    torch.testing.assert_close(dynamic(*inputs).embeddings, plain(*inputs).embeddings)


def test_the_mask_token_learns():
    encoder, token = make_encoder(), torch.zeros(16, requires_grad=True)
    mask = torch.rand(2, 9) < 0.5
    mask[0, 0] = True
    encoder(torch.randn(2, 3, 24, 24), mask, token).embeddings.square().sum().backward()
    assert token.grad.isfinite().all() and token.grad.any()


@torch.no_grad()
def test_weights_of_another_resolution_load_with_their_positions_resampled():
    small, large = make_encoder(24), make_encoder(40)
    with torch.no_grad():
        columns = torch.arange(3.0).repeat(3)
        small.vit.pos_embed[:, 1:] = columns[:, None]
        small.vit.pos_embed[:, 0] = 5.0
    large.load_state_dict(small.state_dict())
    actual = large.vit.pos_embed[0, :, 0]
    assert actual[0] == 5
    grid = actual[1:].view(5, 5)
    assert (grid.diff(dim=1) > 0).all()
    torch.testing.assert_close(grid, grid[:1].expand(5, -1), atol=1e-5, rtol=0)
    for name, parameter in large.vit.named_parameters():
        if name != 'pos_embed':
            assert parameter.equal(dict(small.vit.named_parameters())[name])


@torch.no_grad()
@pytest.mark.parametrize('side', [16, 40])
def test_positions_without_antialiasing_are_those_of_albef(side):
    source = make_encoder(24)
    torch.nn.init.normal_(source.vit.pos_embed)
    encoder = make_encoder(side, pos_embed_antialias=False)
    for loads in (encoder, deepcopy(encoder)):  # the teacher is a copy
        loads.load_state_dict(source.state_dict())
        table = source.vit.pos_embed
        grid = table[:, 1:].reshape(1, 3, 3, 16).permute(0, 3, 1, 2)
        size = (side // 8, side // 8)
        grid = interpolate(grid, size=size, mode='bicubic', align_corners=False)
        expected = torch.cat([table[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)
        torch.testing.assert_close(loads.vit.pos_embed, expected, atol=1e-6, rtol=0)
    by_default = make_encoder(side)
    by_default.load_state_dict(source.state_dict())
    assert not by_default.vit.pos_embed.allclose(expected, atol=1e-2)


def test_weights_of_an_equal_resolution_load_unchanged():
    source, encoder = make_encoder(), make_encoder()
    encoder.load_state_dict(source.state_dict())
    assert encoder.vit.pos_embed.equal(source.vit.pos_embed)


def test_sizes_come_from_the_vit():
    encoder = make_encoder()
    assert (encoder.embed_dims, encoder.patch_size) == (16, 8)
    assert len(encoder.vit.blocks) == 2


def test_a_missing_file_of_weights_is_a_clear_error(tmp_path):
    encoder = make_encoder(pretrained=str(tmp_path / 'none.safetensors'))
    with pytest.raises(FileNotFoundError, match='image_encoder.pretrained='):
        encoder.init_weights()


@torch.no_grad()
def test_pretrained_weights_are_read_by_init_weights(tmp_path):
    whole = timm.create_model('vit_tiny_patch16_224', num_classes=0)
    path = tmp_path / 'weights.pth'
    torch.save(whole.state_dict(), path)
    encoder = ViTImageEncoder('vit_tiny_patch16_224', image_size=32, depth=1, pretrained=str(path))
    encoder.init_weights()
    assert encoder.vit.blocks[0].attn.qkv.weight.equal(whole.blocks[0].attn.qkv.weight)
    assert encoder.vit.pos_embed.shape == (1, 5, 192)


@pytest.mark.parametrize('prefix', ['image_encoder', 'backbone.image_encoder'])
def test_the_encoder_of_a_checkpoint_of_this_package_is_read_by_init_weights(tmp_path, prefix):
    trained, path = make_encoder(conv_stem=True), tmp_path / 'epoch_1.pth'
    state = {f'{prefix}.{name}': value for name, value in trained.state_dict().items()}
    others = {
        f'teacher.module.{prefix}.vit.norm.weight': torch.zeros(16),
        'classifier.bias': torch.zeros(3),
    }
    torch.save({'state_dict': {**state, **others}, 'meta': {}}, path)
    encoder = make_encoder(40, conv_stem=True, pretrained=str(path))
    encoder.init_weights()
    found = encoder.state_dict()
    for name, value in trained.state_dict().items():
        assert found[name].equal(value) or name == 'vit.pos_embed', name
    assert encoder.vit.pos_embed.shape == (1, 26, 16), 'resampled'


def test_weights_that_do_not_fit_are_counted(tmp_path):
    """None may be left at random."""
    file, depth = tmp_path / 'w.pth', 2
    weights = make_encoder(depth=depth).state_dict()
    encoder = make_encoder(depth=depth, pretrained=str(file))
    torch.save({'foo.weight': torch.zeros(3)}, file)
    with pytest.raises(ValueError, match=r'w\.pth.* has 1 tensors, .*: 0 fit by name'):
        encoder.init_weights()
    half = {name.removeprefix('vit.'): x for name, x in weights.items() if '.blocks.1.' not in name}
    torch.save(half, file)
    message = f'w.pth.* has {len(half)} tensors, .* {len(weights)}: {len(half)} fit by name'
    with pytest.raises(ValueError, match=message):
        encoder.init_weights()
    torch.save({'state_dict': {f'image_encoder.vit.{name}': x for name, x in half.items()}}, file)
    lacking = len(weights) - len(half)
    with pytest.raises(ValueError, match=f'w.pth.* lacks {lacking} of the {len(weights)} weights'):
        encoder.init_weights()


@torch.no_grad()
def test_files_in_the_layouts_that_timm_knows_are_read(tmp_path):
    source, file = make_encoder(depth=2), tmp_path / 'w.pth'
    weights = {name.removeprefix('vit.'): x for name, x in source.state_dict().items()}
    flat = {**weights, 'patch_embed.proj.weight': weights['patch_embed.proj.weight'].flatten(1)}
    trunk = {f'visual.trunk.{name}': x for name, x in weights.items()}  # of OpenCLIP
    for content in (dict(model=flat), trunk):
        torch.save(content, file)
        encoder = make_encoder(depth=1, pretrained=str(file))
        encoder.init_weights()
        for name, x in encoder.vit.state_dict().items():
            assert x.equal(weights[name]) or name == 'pos_embed', name


def test_a_model_without_cls_or_with_registers_is_an_error():
    for arch in ('vit_base_patch16_siglip_224', 'vit_small_patch14_reg4_dinov2'):
        with pytest.raises(ValueError, match=r'tokens before the patches.*TimmImageEncoder'):
            make_encoder(arch=arch, depth=1)


@pytest.mark.parametrize('arch', ['beit_base_patch16_224', 'cait_xxs24_224'])
def test_a_transformer_of_other_parts_is_an_error(arch):
    with pytest.raises(ValueError, match=rf"arch='{arch}' is a \w+, expected.*TimmImageEncoder"):
        make_encoder(arch=arch, depth=1)


@torch.no_grad()
def test_a_cnn_is_an_error_that_names_the_encoder_of_cnns():
    with pytest.raises(ValueError, match=r"arch='resnet18' takes no img_size.*TimmImageEncoder"):
        ViTImageEncoder(arch='resnet18', image_size=32)


def test_the_grid_is_that_of_patches_made_by_a_cnn():
    encoder = ViTImageEncoder('vit_tiny_r_s16_p8_224', image_size=64, depth=1).eval()
    tokens = encoder(torch.randn(1, 3, 64, 64))
    assert tokens.embeddings.shape[1] == 1 + 2 * 2 and tokens.grid_size == (2, 2)


def test_positions_without_one_of_cls_are_resampled():
    small, large = (make_encoder(size, arch='deit3_small_patch16_224') for size in (24, 40))
    large.vit.load_state_dict(small.vit.state_dict())
    loaded = small.vit.pos_embed.detach().view(1, 3, 3, 16).permute(0, 3, 1, 2)
    expected = interpolate(loaded, (5, 5), mode='bicubic', antialias=True)
    expected = expected.flatten(2).transpose(1, 2)
    torch.testing.assert_close(large.vit.pos_embed.detach(), expected)


def test_patches_cannot_be_dropped():
    with pytest.raises(ValueError, match=r'patch_drop_rate=0\.5: a patch .* no place in the grid'):
        make_encoder(patch_drop_rate=0.5)

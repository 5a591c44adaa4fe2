"""EMKUM: the shared block, both losses, the teacher, and what changes with token types."""

import copy

import pytest
import timm
import torch
from timm.models.vision_transformer import Block
from torch import distributed
from torch.multiprocessing import start_processes
from torch.nn.functional import cross_entropy

from xmodal.engine.optim.constructor import NoDecayConstructor
from xmodal.models.backbones import TimmTeacher
from xmodal.models.emkum.shared_block import SharedBlock
from xmodal.registry import MODELS, register_all
from xmodal.structures import ImageTextBatch, Regions, Tokens
from xmodal.weights import WEIGHT_SOURCES

WIDTH, TEACHER_WIDTH = 32, 48
TYPES = {
    'none': None,
    'tte_pre': dict(position='pre_encoder', layer_scale=None),
    'tte_post_noscale': dict(position='post_encoder', layer_scale=None),
    'tte_post': dict(position='post_encoder', layer_scale=1e-5),
}


@pytest.fixture
def emkum_config(config):
    """Makes the config of a tiny model, out of the tiny pre-trainer's."""

    def make(types='none', teacher=True, pretrained=False, **options):
        tiny = config(heads=['itc'])
        token_type = TYPES[types] and dict(type='TokenTypeEmbedding', **TYPES[types])
        return dict(
            type='EmkumModel',
            data_preprocessor=tiny['data_preprocessor'],
            image_encoder=tiny['backbone']['image_encoder'],
            text_encoder=tiny['backbone']['text_encoder'],
            shared_block=dict(num_heads=2),
            token_type=token_type,
            teacher=dict(
                type='TimmTeacher',
                arch='vit_tiny_patch16_224',
                img_size=24,
                patch_size=8,
                embed_dim=TEACHER_WIDTH,
                depth=1,
                global_pool='token',
                pretrained=pretrained,
                drop_path_rate=0.5,
                proj_drop_rate=0.5,
            )
            if teacher
            else None,
            **options,
        )

    return make


@pytest.fixture
def emkum(emkum_config):
    """Builds a tiny model."""
    return lambda *args, **options: MODELS.build(emkum_config(*args, **options))


def embeddings_of(model, data):
    image, text = model.tensor(data)
    return torch.cat([image.embedding, text.embedding])


# the shared block


def make_blocks():
    """The block and timm's, with equal random weights."""
    block = SharedBlock(WIDTH, num_heads=4)
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    timm_block = Block(
        WIDTH,
        4,
        qkv_bias=True,
        init_values=0.2,
        norm_layer=lambda *a, **k: torch.nn.LayerNorm(*a, eps=1e-6, **k),
    )
    attention = block.attention
    names = {
        'norm1': block.attention_norm,
        'attn.proj': attention.out_proj,
        'ls1': block.attention_scale,
        'norm2': block.feedforward_norm,
        'mlp.fc1': block.fc1,
        'mlp.fc2': block.fc2,
        'ls2': block.feedforward_scale,
    }
    weights = {f'{n}.{k}': v for n, part in names.items() for k, v in part.state_dict().items()}
    for kind in ('weight', 'bias'):
        parts = (attention.q_proj, attention.k_proj, attention.v_proj)
        weights[f'attn.qkv.{kind}'] = torch.cat([getattr(part, kind) for part in parts])
    timm_block.load_state_dict(weights)
    return block, timm_block.eval()


@torch.no_grad()
def test_the_block_equals_timms_with_layer_scale():
    block, timm_block = make_blocks()
    tokens = torch.randn(2, 5, WIDTH)
    hidden_of_timm = []
    timm_block.mlp.fc1.register_forward_hook(
        lambda module, inputs, output: hidden_of_timm.append(output)
    )
    actual, hidden = block(Tokens(tokens))
    torch.testing.assert_close(actual.embeddings, timm_block(tokens))
    torch.testing.assert_close(hidden, hidden_of_timm[0][:, 0], msg='[CLS] of fc1, before the GELU')


@torch.no_grad()
def test_padding_changes_nothing():
    block, _ = make_blocks()
    tokens, mask = torch.randn(1, 6, WIDTH), torch.arange(6)[None] < 4
    actual, hidden = block(Tokens(tokens, mask))
    short, short_hidden = block(Tokens(tokens[:, :4]))
    torch.testing.assert_close(actual.embeddings[:, :4], short.embeddings)
    torch.testing.assert_close(hidden, short_hidden)


@torch.no_grad()
def test_cls_alone_passes_as_among_the_others():
    block, _ = make_blocks()
    tokens, mask = torch.randn(2, 6, WIDTH), torch.arange(6)[None] < torch.tensor([[4], [6]])
    whole, hidden = block(Tokens(tokens, mask))
    alone, hidden_alone = block(Tokens(tokens, mask), only_cls=True)
    torch.testing.assert_close(alone.embeddings, whole.embeddings[:, :1])
    torch.testing.assert_close(hidden_alone, hidden)


def test_its_scales_begin_at_a_fifth():
    block = SharedBlock(WIDTH, num_heads=4)
    for scale in (block.attention_scale, block.feedforward_scale):
        assert torch.equal(scale.gamma, torch.full((WIDTH,), 0.2))


# token types


@torch.no_grad()
def test_at_the_first_step_only_the_scaled_types_change_almost_nothing(emkum, batch):
    data, embeddings = batch(), {}
    plain = emkum('none').eval()
    for name in TYPES:
        model = emkum(name).eval()
        model.load_state_dict(plain.state_dict(), strict=False)
        if model.token_type is not None:
            generator = torch.Generator().manual_seed(1)
            model.token_type.type_embeddings.normal_(generator=generator)
        embeddings[name] = embeddings_of(model, data)
    assert (embeddings['tte_post'] - embeddings['none']).abs().max() < 1e-5
    for variant, reference in (
        ('tte_pre', 'none'),
        ('tte_post_noscale', 'none'),
        ('tte_pre', 'tte_post_noscale'),
    ):
        difference = embeddings[variant] - embeddings[reference]
        assert difference.abs().max() > 1e-3, (variant, reference)


def test_every_parameter_gets_a_gradient(emkum, batch):
    for name in TYPES:
        model = emkum(name)
        sum(x for key, x in model(batch(), mode='loss').items() if 'loss' in key).backward()
        missing = [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None]
        assert missing == [], name


# losses


def literal_losses(model, data, teacher_images):
    """CLIP's loss at both levels, and the mean squared errors, written out."""
    sides = {}
    for name, encoder, inputs in (
        ('image', model.image_encoder, (data.images,)),
        ('text', model.text_encoder, (data.input_ids, data.attention_mask)),
    ):
        tokens, hidden = model.shared_block(encoder(*inputs))
        sides[name] = {'hidden': hidden, 'output': tokens.embeddings[:, 0]}
    losses = {}
    for level in ('hidden', 'output'):
        image, text = (sides[name][level] for name in ('image', 'text'))
        image, text = (x / x.square().sum(1, keepdim=True).sqrt() for x in (image, text))
        logits = image @ text.T / 0.07
        labels = torch.arange(len(logits))
        both = cross_entropy(logits, labels) + cross_entropy(logits.T, labels)
        losses[f'loss_{level}'] = both / 2 / 2
    head, target = model.heads['distillation'], model.teacher(teacher_images)
    errors = [
        (head.projection(head.norm(sides[name]['output'])) - target).square().mean()
        for name in ('image', 'text')
    ]
    losses['loss_distillation'] = sum(errors) / 2
    return losses


def test_the_losses_are_those_of_the_paper(emkum, batch):
    model, data = emkum(), batch()
    logs = model(data, mode='loss')
    for name, expected in literal_losses(model, data, data.images).items():
        torch.testing.assert_close(logs[name], expected, msg=name)
    assert {name for name in logs if 'loss' in name} == {
        'loss_hidden',
        'loss_output',
        'loss_distillation',
    }


def test_student_and_teacher_see_different_crops(emkum, batch):
    model, data = emkum(), batch()
    crops = torch.randn(4, 2, 3, 24, 24)
    logs = model(data._replace(images=crops.flatten(0, 1)), mode='loss')
    expected = literal_losses(model, data._replace(images=crops[:, 0]), crops[:, 1])
    for name, value in expected.items():
        torch.testing.assert_close(logs[name], value, msg=name)


def test_without_a_teacher_only_the_contrastive_losses_are_left(emkum, batch):
    logs = emkum(teacher=False)(batch(), mode='loss')
    assert {name for name in logs if 'loss' in name} == {'loss_hidden', 'loss_output'}


def test_the_embedding_is_the_normalised_output_at_cls(emkum, batch):
    model, data = emkum(), batch()
    image, _ = model.tensor(data)
    cls_token = image.tokens.embeddings[:, 0]
    torch.testing.assert_close(image.embedding, cls_token / cls_token.norm(dim=1, keepdim=True))


# the teacher


def test_the_teacher_stays_in_eval_mode_and_out_of_checkpoint_and_optimizer(emkum):
    model = emkum()
    model.train()
    assert model.training and not any(part.training for part in model.teacher.modules())
    assert not [name for name in model.state_dict() if 'teacher' in name]
    teachers = {id(parameter) for parameter in model.teacher.parameters()}
    build = NoDecayConstructor(dict(optimizer=dict(type='AdamW', lr=1e-3)))
    groups = build(model).optimizer.param_groups
    optimized = {id(parameter) for group in groups for parameter in group['params']}
    assert teachers and not teachers & optimized
    assert len(optimized) + len(teachers) == len(list(model.parameters()))


def test_a_checkpoint_loads_strictly_and_does_not_change_the_teacher(emkum):
    source, model = emkum(), emkum()
    before = copy.deepcopy(model.teacher.model.state_dict())
    model.load_state_dict(source.state_dict(), strict=True)
    assert torch.equal(model.shared_block.fc1.weight, source.shared_block.fc1.weight)
    for name, value in model.teacher.model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_no_gradient_reaches_the_teacher(emkum, batch):
    model = emkum()
    sum(x for key, x in model(batch(), mode='loss').items() if 'loss' in key).backward()
    assert all(parameter.grad is None for parameter in model.teacher.parameters())


def test_the_teachers_weights_are_read_when_training_starts(emkum, tmp_path):
    source, file = emkum().teacher.model.model, tmp_path / 'teacher.pth'
    torch.save({'model': {**source.state_dict(), 'lm_head.weight': torch.zeros(3)}}, file)
    model = emkum(pretrained=str(file))
    model.init_weights()
    weight = model.teacher.model.model.blocks[0].mlp.fc1.weight
    assert torch.equal(weight, source.blocks[0].mlp.fc1.weight)


def test_missing_weights_and_those_of_another_model_are_clear_errors(emkum, tmp_path):
    with pytest.raises(FileNotFoundError, match="teacher.pretrained='none.pth'.*can't be loaded"):
        emkum(pretrained='none.pth').init_weights()
    file = tmp_path / 'other.pth'
    torch.save({'blocks.0.norm1.weight': torch.zeros(TEACHER_WIDTH)}, file)
    with pytest.raises(ValueError, match=r'teacher\.pretrained=.*other\.pth.* 1 fit by name'):
        emkum(pretrained=str(file)).init_weights()


@torch.no_grad()
def test_any_model_of_timm_can_be_the_teacher():
    images = torch.randn(2, 3, 32, 32)
    for arch, options in (
        ('vit_tiny_patch16_224', dict(img_size=32, global_pool='token')),
        ('resnet10t', {}),
        ('mobilenetv3_small_050', {}),  # has a layer after the pooling
    ):
        teacher = TimmTeacher(arch, pretrained=False, **options).eval()
        actual = teacher(images)
        assert actual.shape == (2, teacher.embed_dims)
    vit = timm.create_model('vit_tiny_patch16_224', img_size=32, num_classes=0).eval()
    teacher = TimmTeacher('vit_tiny_patch16_224', False, img_size=32, global_pool='token').eval()
    teacher.model.load_state_dict(vit.state_dict())
    torch.testing.assert_close(teacher(images), vit.forward_features(images)[:, 0])


def test_the_teachers_weights_may_be_of_any_source(tmp_path, monkeypatch):
    weights = timm.create_model('resnet10t', num_classes=0).state_dict()
    torch.save(weights, tmp_path / 'teacher.pth')
    monkeypatch.setitem(WEIGHT_SOURCES.module_dict, 'folder', lambda name: tmp_path / f'{name}.pth')
    teacher = TimmTeacher('resnet10t', pretrained='folder:teacher')
    teacher.init_weights()
    for name, value in teacher.model.state_dict().items():
        assert value.equal(weights[name]), name


# learning


def overfit(model, data):
    """Trains on one batch, and returns its last losses."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        losses = {k: v for k, v in model(data, mode='loss').items() if 'loss' in k}
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
    return losses


def test_it_overfits_a_few_samples(emkum, batch):
    model, data = emkum('tte_post'), batch(size=6)
    losses = overfit(model, data)
    image, text = model.tensor(data)
    similarity = image.embedding @ text.embedding.T
    assert similarity.argmax(1).tolist() == similarity.argmax(0).tolist() == list(range(6))
    assert losses['loss_output'] < 0.1
    assert model.token_type.gamma.abs().max() > 1e-3, 'γ does not move'


# grid features


def on_grid_features(config, encoder='GridFeatureEncoder'):
    config['image_encoder'] = dict(type=encoder, feature_dims=12, embed_dims=WIDTH)
    return config


@pytest.mark.parametrize('size', [2, 6])
def test_it_learns_from_the_grid_features_of_a_frozen_cnn(emkum_config, batch, size):
    torch.manual_seed(0)
    model = MODELS.build(on_grid_features(emkum_config('tte_post', teacher=False)))
    features, mask = torch.randn(size, 9, 12), torch.ones(size, 9, dtype=torch.bool)
    data = batch(size=size)._replace(images=Regions(features, mask, torch.rand(size, 9, 4)))
    overfit(model, data)
    image, text = model.tensor(data)
    assert image.tokens.grid_size == (3, 3) and image.tokens.embeddings.shape[1] == 10
    assert (image.embedding @ text.embedding.T).argmax(1).tolist() == list(range(size))


# bad input


def test_an_encoder_of_regions_without_cls_is_an_error(emkum_config):
    config = on_grid_features(emkum_config(), 'RegionEncoder')
    with pytest.raises(ValueError, match=r'RegionEncoder has no \[CLS\].*GridFeatureEncoder'):
        MODELS.build(config)


def test_a_text_encoder_without_cls_is_an_error(emkum_config):
    config = emkum_config()
    config['text_encoder'] = dict(type='GruTextEncoder', vocab_size=128, embed_dims=WIDTH)
    with pytest.raises(ValueError, match=r'GruTextEncoder has no \[CLS\].*for texts a BERT'):
        MODELS.build(config)


def test_a_teacher_of_grid_features_is_an_error(emkum_config):
    with pytest.raises(ValueError, match='the teacher sees pixels.*GridFeatureEncoder'):
        MODELS.build(on_grid_features(emkum_config()))


def test_encoders_of_two_widths_are_an_error(emkum_config):
    config = emkum_config()
    config['image_encoder'] |= dict(embed_dim=16)
    with pytest.raises(ValueError, match='image_encoder is 16 wide and text_encoder 32'):
        MODELS.build(config)


def test_an_unknown_mode_is_an_error(emkum, batch):
    with pytest.raises(ValueError, match=r"mode='predict', expected one of \['loss', 'tensor'\]"):
        emkum()(batch(), mode='predict')


# across ranks


def losses_and_gradients(config, data):
    torch.manual_seed(0)
    model = MODELS.build(config)
    losses = {k: v for k, v in model(data, mode='loss').items() if 'loss' in k}
    sum(losses.values()).backward()
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return {k: v.detach() for k, v in losses.items()}, gradients


def train_on_rank(rank, config, data, folder):
    register_all()  # first: what torch imports then may keep the processes' connections for good
    distributed.init_process_group('gloo', f'file://{folder}/store', rank=rank, world_size=2)
    half = ImageTextBatch(*(x.chunk(2)[rank] for x in data))
    torch.save(losses_and_gradients(config, half), f'{folder}/{rank}.pth')
    distributed.destroy_process_group()


def test_two_ranks_equal_one_process_with_the_joint_batch(emkum_config, batch, tmp_path):
    config = emkum_config('tte_post')
    data = batch(size=6, image_ids=[1, 2, 3, 4, 1, 5])
    arguments = config, data, str(tmp_path)
    start_processes(train_on_rank, arguments, nprocs=2, start_method='forkserver')
    losses, gradients = losses_and_gradients(config, data)
    ranks = [torch.load(tmp_path / f'{rank}.pth', weights_only=True) for rank in range(2)]
    for name, expected in losses.items():
        actual = (ranks[0][0][name] + ranks[1][0][name]) / 2
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4, msg=name)
    for name, expected in gradients.items():
        actual = (ranks[0][1][name] + ranks[1][1][name]) / 2
        torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-3, msg=name)

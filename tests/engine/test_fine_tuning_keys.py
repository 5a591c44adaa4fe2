"""Keys of fine-tuning, in every family: frozen parts, layer-wise rates, LoRA."""

import sys
from copy import deepcopy
from importlib.util import find_spec

import pytest
import timm
import torch
import transformers
from runs import assert_same_end, call_at, load, stop, train
from torch import nn
from transformers import BertConfig, BertModel

from tools.model_converters import final_weights
from xmodal.engine.checkpoint import load_start_weights
from xmodal.engine.launch import build_runner
from xmodal.engine.optim.constructor import NoDecayConstructor, undecayed_names
from xmodal.errors import ConfigError
from xmodal.lora import merge_lora
from xmodal.models.backbones import BertTextEncoder
from xmodal.registry import MODELS

needs_peft = pytest.mark.skipif(
    not find_spec('peft'), reason="LoRA needs the extra: pip install -e '.[lora]'"
)
FAMILIES = ('acerpe', 'emkum', 'lxmert', 'sgraf')
# A part of each family and its linear layers; SAF multiplies weights without calling the layers.
PARTS = {
    'acerpe': ('backbone.text_encoder', ['query', 'value']),
    'emkum': ('image_encoder', ['qkv']),
    'lxmert': ('backbone.image_encoder', 'layers.*(_proj|fc1)'),
    'sgraf': ('similarity', r'.*(query|key|linear|output|relevance)'),
}
DECAY = 0.5


def part_of(section, path):
    for name in path.split('.'):
        section = section[name]
    return section


def with_lora(config, family, **options):
    path, targets = PARTS[family]
    lora = dict(r=2, lora_alpha=6, target_modules=targets, **options)
    part_of(config.model, path).update(lora=lora)
    return config


def move_matrices(model):
    """Gives the second matrices, which start as zeros, values."""
    names = [name for name, _ in model.named_parameters() if 'lora_B' in name]
    for name in names:
        nn.init.normal_(model.get_parameter(name), std=0.3)
    return names


def beit_layer(name, blocks, embeddings, num_layers):
    """``get_num_layer_for_vit`` of BEiT's optim_factory.py, with the names of an encoder."""
    if name.startswith(embeddings):
        return 0
    if name.startswith(blocks):
        return int(name.removeprefix(blocks).split('.')[0]) + 1
    return num_layers + 1


NAMES = {
    'vit.': ('vit.blocks.', ('vit.cls_token', 'vit.pos_embed', 'vit.patch_embed')),
    'bert.': ('bert.encoder.layer.', ('bert.embeddings.',)),
    '': ('layers.', ('embedding.',)),  # LXMERT's encoder of objects
}


@pytest.mark.parametrize('family', FAMILIES[:3])
def test_rates_fall_by_beits_formula(family, family_config):
    config = family_config(family)
    encoders = config.model.get('backbone', config.model)
    encoders.image_encoder.depth, encoders.text_encoder.config.num_hidden_layers = 3, 2
    model = MODELS.build(config.model)
    encoders = getattr(model, 'backbone', model)
    expected = {}
    for encoder, depth in ((encoders.image_encoder, 3), (encoders.text_encoder, 2)):
        for name, parameter in encoder.named_parameters():
            prefix = next(prefix for prefix in NAMES if name.startswith(prefix))
            layer = beit_layer(name, *NAMES[prefix], depth)
            expected[parameter] = 2.0 * DECAY ** (depth + 1 - layer)
    assert {2.0 * DECAY**k for k in range(1, 5)} <= set(expected.values())
    cfg = dict(optimizer=dict(type='AdamW', lr=2.0, weight_decay=0.1))
    groups = NoDecayConstructor(cfg, dict(layer_decay=DECAY))(model).optimizer.param_groups
    rates = {parameter: group['lr'] for group in groups for parameter in group['params']}
    assert rates.keys() == {x for x in model.parameters() if x.requires_grad}
    for parameter, rate in rates.items():
        assert rate == expected.get(parameter, 2.0)
    decays = {x: group['weight_decay'] for group in groups for x in group['params']}
    plain = NoDecayConstructor(cfg)(model).optimizer.param_groups
    assert decays == {x: group['weight_decay'] for group in plain for x in group['params']}
    assert groups[0]['lr'] == 2.0  # the log shows the first group's


def test_positions_and_registers_of_other_libraries_do_not_decay():
    sizes = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    size = dict(img_size=32, patch_size=16, embed_dim=8, depth=1, num_heads=2, reg_tokens=2)
    clip = transformers.CLIPTextModel(transformers.CLIPTextConfig(**sizes))
    siglip = transformers.SiglipTextModel(transformers.SiglipTextConfig(**sizes))
    models = {
        clip: {'position_embedding'},
        siglip: {'position_embedding'},
        transformers.MPNetModel(transformers.MPNetConfig(**sizes)): {
            'position_embeddings', 'relative_attention_bias',
        },
        timm.models.VisionTransformer(**size): {'pos_embed', 'cls_token', 'reg_token'},
        timm.models.swin_transformer.WindowAttention(8, 2, window_size=2): {
            'relative_position_bias_table',
        },
        timm.models.fastvit.RepMixerBlock(8): {'gamma'},
        timm.models.fastvit.AttentionBlock(32): {'gamma'},
    }  # fmt: skip
    for model, expected in models.items():
        undecayed = undecayed_names(model)
        found = {
            name.removesuffix('.weight').rpartition('.')[2]
            for name, parameter in model.named_parameters()
            if parameter.ndim > 1 and name in undecayed
        }
        assert found == expected


@pytest.mark.parametrize(
    ('position', 'expected'),
    [
        (dict(type='AnchorAbsolutePosition'), {'similarity_weight'}),
        (dict(type='AnchorRelativePosition', mode='bias'), {'bias_projection'}),
        (dict(type='AnchorRelativePosition'), set()),
    ],
)
def test_vectors_of_several_layers_do_not_decay(position, expected):
    built = MODELS.build(dict(position, groups=2, depth=2, embed_dims=8, num_heads=2))
    assert undecayed_names(built) == expected


def test_embeddings_of_places_do_not_decay():
    position = dict(type='AbsoluteRelativePosition', depth=1, embed_dims=8, num_heads=2)
    built = MODELS.build(position)
    assert undecayed_names(built) == {name for name, _ in built.named_parameters()}


def test_a_wrong_layer_decay_is_a_sentence(family_config):
    cfg = dict(optimizer=dict(type='AdamW', lr=1.0))
    for value in (0, 1.5, '0.5', True):
        with pytest.raises(ConfigError, match='layer_decay=.*expected a number above 0'):
            NoDecayConstructor(cfg, dict(layer_decay=value))
    model = MODELS.build(family_config('sgraf').model)  # a GRU, and a layer over regions
    with pytest.raises(ConfigError, match='no encoder of ImageTextMatcher has blocks'):
        NoDecayConstructor(cfg, dict(layer_decay=0.5))(model)


def test_a_custom_key_scales_the_rates_of_the_parts_it_names(family_config):
    model = MODELS.build(family_config('acerpe').model)
    cfg = dict(optimizer=dict(type='AdamW', lr=2.0, weight_decay=0.1))
    custom = {'text_encoder': dict(lr_mult=0.5), 'text_encoder.bert.encoder': dict(lr_mult=0.25)}
    options = dict(custom_keys=custom, layer_decay=DECAY)
    groups = NoDecayConstructor(cfg, options)(model).optimizer.param_groups
    by_layer = NoDecayConstructor(cfg, dict(layer_decay=DECAY))(model).optimizer.param_groups
    rates, plain = (
        {parameter: group['lr'] for group in groups for parameter in group['params']}
        for groups in (groups, by_layer)
    )
    factors = set()
    trained = [(name, x) for name, x in model.named_parameters() if x.requires_grad]
    for name, parameter in trained:
        factor = 0.25 if 'text_encoder.bert.encoder' in name else 0.5
        factor = factor if 'text_encoder' in name else 1.0
        factors.add(factor)
        assert rates[parameter] == pytest.approx(factor * plain[parameter])
    assert factors == {0.25, 0.5, 1.0}


@pytest.mark.parametrize('value', [dict(decay_mult=0), dict(lr_mult=0), dict(lr_mult='1'), 0.1])
def test_a_wrong_custom_key_is_a_sentence(family_config, value):
    cfg = dict(optimizer=dict(type='AdamW', lr=1.0))
    with pytest.raises(ConfigError, match=r"custom_keys\['text_encoder'\]=.*a number above 0"):
        NoDecayConstructor(cfg, dict(custom_keys={'text_encoder': value}))
    model = MODELS.build(family_config('acerpe').model)
    with pytest.raises(ConfigError, match=r"custom_keys\['txt'\]: no parameter of the model"):
        NoDecayConstructor(cfg, dict(custom_keys={'txt': dict(lr_mult=0.1)}))(model)


@needs_peft
@pytest.mark.parametrize('family', FAMILIES)
def test_of_a_part_with_lora_its_matrices_alone_learn_and_merge_into_the_weights(
    family, family_config, tmp_path
):
    config = with_lora(family_config(family), family)
    config.train_cfg.update(max_epochs=1, val_interval=100)
    config.train_dataloader.update(global_batch_size=4, num_batch_per_epoch=2)
    config.work_dir = str(tmp_path / 'run')
    gradients, before = {}, {}

    def keep(runner):
        before.update({n: x.detach().clone() for n, x in runner.model.named_parameters()})
        for name, x in runner.model.named_parameters():
            if x.requires_grad:
                x.register_post_accumulate_grad_hook(lambda x, n=name: gradients.update({n: x}))

    config.custom_hooks = [*config.get('custom_hooks', []), call_at(0, keep)]
    model = train(config).model
    path = PARTS[family][0]
    inside = {name for name in gradients if name.startswith(f'{path}.')}
    matrices = {name for name in before if 'lora_' in name and not name.startswith('teacher')}
    assert matrices and inside == matrices and len(gradients) > len(inside)
    for name, value in model.named_parameters():
        if name.startswith(f'{path}.') and 'lora_' not in name:
            assert torch.equal(value, before[name]), name

    moved = move_matrices(model)
    data = model.data_preprocessor(read_batch(config))
    outputs = []
    for merge in (lambda model: None, merge_lora):
        copy = deepcopy(model)  # a loss changes the queue
        merge(copy)
        torch.manual_seed(0)
        with torch.no_grad():
            outputs.append(copy.eval().loss(data['inputs'], data['data_samples']))
    assert moved and not any('lora' in name for name in copy.get_submodule(path).state_dict())
    for name, value in outputs[0].items():
        torch.testing.assert_close(outputs[1][name], value, rtol=1e-3, atol=1e-4, msg=name)


def read_batch(config):
    config = config.copy()
    config.update(work_dir=f'{config.work_dir}_data', experiment_name=f'data {config.work_dir}')
    loader = {**config.train_dataloader, 'batch_size': 4}
    for key in ('global_batch_size', 'num_batch_per_epoch'):
        del loader[key]
    return next(iter(build_runner(config).build_dataloader(loader)))


def test_what_lora_lacks_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'peft', None)
    encoder = dict(type='RegionEncoder', feature_dims=6, embed_dims=5, lora=dict(r=2))
    with pytest.raises(ConfigError, match=r'lora of RegionEncoder needs peft: .*\(.*peft'):
        MODELS.build(encoder)


@needs_peft
def test_a_linear_layer_with_lora_is_its_equation():
    encoder = dict(type='RegionEncoder', feature_dims=6, embed_dims=5)
    layer = MODELS.build({**encoder, 'lora': dict(r=2, lora_alpha=6, target_modules='projection')})
    move_matrices(layer)
    x, parts = torch.randn(3, 6), dict(layer.named_parameters())
    names = 'base_layer.weight', 'base_layer.bias', 'lora_A.default.weight', 'lora_B.default.weight'
    weight, bias, a, b = (parts[f'projection.{name}'] for name in names)
    expected = x @ weight.T + bias + 6 / 2 * (x @ a.T) @ b.T
    torch.testing.assert_close(layer.projection(x), expected)
    torch.testing.assert_close(x @ layer.projection.weight.T + bias, expected)
    assert {name for name, value in parts.items() if value.requires_grad} == {
        'projection.lora_A.default.weight',
        'projection.lora_B.default.weight',
    }


@needs_peft
def test_a_run_without_lora_starts_from_no_weights_whose_matrices_are_not_merged():
    encoder = dict(type='RegionEncoder', feature_dims=6, embed_dims=5)
    trained = MODELS.build({**encoder, 'lora': dict(r=2, target_modules='projection')})
    move_matrices(trained)
    model = nn.ModuleDict(dict(region=MODELS.build(encoder), head=nn.Linear(5, 1)))
    weights = {f'region.{name}': value for name, value in trained.state_dict().items()}
    weights['head.bias'] = torch.ones(1)
    with pytest.raises(ConfigError, match=r'lora.pth was trained with LoRA in region.projection.*'):
        load_start_weights(model, weights, 'lora.pth', [])
    merge_lora(trained)
    weights = {f'region.{name}': value for name, value in trained.state_dict().items()}
    load_start_weights(model, weights, 'merged.pth', [])
    assert torch.equal(model['region'].projection.weight, trained.projection.weight)


@needs_peft
def test_pretrained_weights_are_loaded_beside_the_matrices(tmp_path):
    small = dict(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16,
    )  # fmt: skip
    source = BertModel(BertConfig(**small), add_pooling_layer=False).eval()
    source.save_pretrained(tmp_path)
    lora = dict(r=2, target_modules=['query', 'dense'])
    config = dict(type='BertTextEncoder', config=small, pretrained=str(tmp_path), lora=lora)
    encoder = MODELS.build(config).eval()
    assert type(encoder) is BertTextEncoder
    encoder.init_weights()
    ids, mask = torch.randint(0, 20, (2, 5)), torch.ones(2, 5, dtype=torch.bool)
    expected = source(ids, mask).last_hidden_state
    torch.testing.assert_close(encoder(ids, mask).embeddings, expected)  # B is zeros
    assert any('lora_A' in name for name in encoder.state_dict())


@needs_peft
def test_a_run_with_lora_starts_from_one_without_resumes_exactly_and_becomes_one_without(
    tiny_config, tmp_path, monkeypatch
):
    plain = tiny_config.copy()
    plain.work_dir = str(tmp_path / 'plain')
    train(plain, **{'train_cfg.max_epochs': 1})
    lora = with_lora(tiny_config, 'acerpe', lora_dropout=0.5)
    lora.load_from = f'{plain.work_dir}/epoch_1.pth'
    lora.default_hooks.checkpoint.update(by_epoch=False, interval=3)
    lora.custom_hooks += [dict(type='WeightEMAHook', decay=0.5)]
    train(lora)
    part = lora.copy()
    part.work_dir = str(tmp_path / 'part')
    part.custom_hooks = [*lora.custom_hooks, call_at(5, stop)]
    with pytest.raises(KeyboardInterrupt):
        train(part)
    part.custom_hooks, part.load_from = lora.custom_hooks, None
    train(part, resume=True)
    ends = [sorted((tmp_path / name).glob('iter_*.pth'))[-1] for name in ('run', 'part')]
    assert_same_end(*ends)
    averages = [load(end)['weight_ema']['weights'] for end in ends]
    assert all(torch.equal(x, averages[1][name]) for name, x in averages[0].items())

    start, end = load(lora.load_from)['state_dict'], load(ends[0])['state_dict']
    frozen = 'backbone.text_encoder.bert.encoder.layer.0.attention.self.query.'
    assert torch.equal(end[f'{frozen}base_layer.weight'], start[f'{frozen}weight'])

    lora.dump(tmp_path / 'lora.py')
    for options in ([], ['--ema']):
        out = tmp_path / f'final{len(options)}.pth'
        arguments = [str(tmp_path / 'lora.py'), str(ends[0]), str(out), *options]
        monkeypatch.setattr('sys.argv', ['final_weights', *arguments])
        final_weights.main()
        source = end | averages[0] if options else end
        a, b = (source[f'{frozen}lora_{x}.default.weight'] for x in 'AB')
        found = load(out)['state_dict']
        assert found.keys() == start.keys()
        torch.testing.assert_close(found[f'{frozen}weight'], start[f'{frozen}weight'] + 3 * b @ a)
        bias = 'backbone.image_proj.bias'
        assert torch.equal(found[bias], source[bias])


@needs_peft
@pytest.mark.parametrize(
    ('lora', 'message'),
    [
        (dict(target_modules=['key'], use_dora=True), 'refused: .*leave out use_dora'),
        (dict(target_modules=['key'], init_lora_weights='pissa'), 'refused: .*product is zero'),
        (dict(target_modules=['nothing']), r"refused: .*its linear layers: \['dense', 'key'"),
        (dict(r=4), r'expected dict\(target_modules'),
        (dict(rank=4, target_modules=['query']), "no key 'rank'"),
        (True, r'lora=True of BertTextEncoder, expected dict'),
        (dict(r=0, target_modules=['query']), 'refused: .*r'),
    ],
)
def test_a_wrong_lora_is_a_sentence(lora, message):
    encoder = dict(type='BertTextEncoder', config=dict(num_hidden_layers=1), lora=lora)
    with pytest.raises(ConfigError, match=message):
        MODELS.build(encoder)


@needs_peft
@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (dict(target_modules=['proj']), r'of vit\.patch_embed\.proj than .*attn\.proj'),
        (dict(target_modules=['qkv'], modules_to_save=['fc1']), r'fc1 than .*out modules_to_save'),
    ],
)
def test_lora_of_what_is_no_linear_layer_is_a_sentence(options, message):
    """A convolution and a copy of a layer could not be merged into the weights."""
    small = dict(image_size=24, patch_size=8, embed_dim=16, num_heads=2, depth=1)
    with pytest.raises(ConfigError, match=f'makes something else .*{message}'):
        MODELS.build(dict(type='ViTImageEncoder', **small, lora=options))
    linear = dict(target_modules=['qkv', 'attn.proj'])
    MODELS.build(dict(type='ViTImageEncoder', **small, lora=linear))


def test_lora_of_a_frozen_part_or_of_a_whole_model_is_a_sentence(tiny_config):
    lora = dict(target_modules=['query'])
    with pytest.raises(ConfigError, match='both frozen and lora'):
        MODELS.build(dict(type='BertTextEncoder', frozen=True, lora=lora))
    with pytest.raises(ConfigError, match='lora of the whole AlbefPretrainer'):
        MODELS.build({**tiny_config.model, 'lora': lora})


def test_a_frozen_part_keeps_nothing_for_a_backward_pass():
    def kept(frozen):
        """Bytes of activations that are kept."""
        encoder = MODELS.build(
            dict(type='ObjectEncoder', feature_dims=8, embed_dims=16, num_heads=2, depth=2)
            | dict(frozen=frozen)
        )
        layers, total = nn.Sequential(*encoder.layers), []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda x: total.append(x.nbytes), lambda x: x
        ):
            for layer in layers:
                tokens = layer(torch.randn(2, 3, 16), torch.ones(2, 3, dtype=torch.bool))
        return sum(total), tokens.requires_grad

    assert kept(True) == (0, False)
    size, requires_grad = kept(False)
    assert size > 1000 and requires_grad

"""LXMERT with weights of transformers' LXMERT, through the converter and back."""

import json

import pytest
import torch
from mmengine.config import Config
from transformers import (
    LxmertConfig,
    LxmertForPreTraining,
    LxmertForQuestionAnswering,
    LxmertModel,
)

from tools.model_converters import lxmert
from xmodal import converters
from xmodal.models.heads.mlm import MaskedText
from xmodal.registry import MODELS

WIDTH, FEATURES, OBJECTS, ATTRIBUTES, ANSWERS = 32, 12, 9, 4, 5
TASKS = ('mlm', 'objects', 'matching', 'answers')


def make_transformers_model(kind, **switches):
    """One of transformers' models, with random weights."""
    config = LxmertConfig(
        vocab_size=40,
        hidden_size=WIDTH,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=8,
        l_layers=2,
        x_layers=2,
        r_layers=2,
        visual_feat_dim=FEATURES,
        num_object_labels=OBJECTS,
        num_attr_labels=ATTRIBUTES,
        num_qa_labels=ANSWERS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        visual_loss_normalizer=1 / 0.5,  # 6.67 there: 1 / 0.15, rounded
        **switches,
    )
    model = kind(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return model


def load(model, source):
    """Loads converted weights, none of which may be left over; returns the missing names."""
    converted, unconverted, missing = converters.lxmert.convert(
        source.state_dict(), model.state_dict()
    )
    assert not unconverted
    model.load_state_dict(converted, strict=False)
    return missing


def transformers_arguments(batch, padded=True):
    """The arguments of transformers' models."""
    regions = batch.images
    return dict(
        input_ids=batch.input_ids,
        attention_mask=batch.attention_mask.long(),
        visual_feats=regions.features,
        visual_pos=regions.boxes,
        visual_attention_mask=regions.attention_mask.long() if padded else None,
    )


@torch.no_grad()
@pytest.mark.parametrize('padded', [False, True])
def test_outputs_equal_those_of_transformers(build_pretrainer, region_batch, padded):
    model, source = build_pretrainer(TASKS).eval(), make_transformers_model(LxmertModel).eval()
    missing = load(model, source)
    assert all(name.startswith('heads.') for name in missing)
    batch = region_batch()
    if padded:
        batch.images.attention_mask[1, 3:] = False
    fused = model(batch)
    expected = source(**transformers_arguments(batch, padded))
    close = dict(atol=1e-5, rtol=1e-5)
    words, regions = batch.attention_mask, batch.images.attention_mask
    torch.testing.assert_close(fused.text_tokens[words], expected.language_output[words], **close)
    torch.testing.assert_close(
        fused.image_tokens[regions], expected.vision_output[regions], **close
    )
    torch.testing.assert_close(model.backbone.pool(fused), expected.pooled_output, **close)


def freeze(monkeypatch, model, batch):
    """Replaces random masks and labels by fixed ones, and returns them."""
    target_words = torch.rand(batch.input_ids.shape) < 0.5
    target_words &= ~torch.isin(batch.input_ids, model.data_preprocessor.special_ids)
    masked_ids = batch.input_ids.masked_fill(target_words, 4)
    target_regions = torch.rand(batch.images.attention_mask.shape) < 0.5
    masked_regions = batch.images._replace(
        features=batch.images.features.masked_fill(target_regions[..., None], 0)
    )
    matched = torch.tensor([True, False, True, True])
    answers = torch.tensor([3, 1, 0, -1])
    heads = model.heads
    monkeypatch.setattr(heads['mlm'], 'mask_words', lambda *_: MaskedText(masked_ids, target_words))
    monkeypatch.setattr(
        heads['objects'], 'mask_regions', lambda _: (masked_regions, target_regions)
    )
    monkeypatch.setattr(heads['matching'], 'sample_texts', lambda _: (torch.arange(4), matched))
    monkeypatch.setattr(heads['answers'], 'sample_labels', lambda *_: answers)
    ignored = answers.masked_fill(~matched | (answers < 0), -100)
    return masked_ids, target_words, masked_regions, target_regions, matched, ignored


def test_losses_and_gradients_equal_those_of_transformers(
    build_pretrainer, region_batch, questions, monkeypatch
):
    model = build_pretrainer(
        TASKS, feature_loss='smooth_l1', label_scope='all', confidence_weight=True
    )
    source = make_transformers_model(LxmertForPreTraining)
    assert not load(model, source)
    batch = region_batch()
    masked_ids, target_words, masked_regions, target_regions, matched, answers = freeze(
        monkeypatch, model, batch
    )
    logs = model(batch, questions(*[None] * 4), mode='loss')
    actual = sum(value for name, value in logs.items() if name.startswith('loss'))
    actual.backward()
    labels = batch.images.labels
    expected = source(
        **transformers_arguments(
            batch._replace(input_ids=masked_ids, images=masked_regions), padded=False
        ),
        labels=batch.input_ids.masked_fill(~target_words, -100),
        obj_labels={
            'obj': (labels.objects, labels.object_confidences),
            'attr': (labels.attributes, labels.attribute_confidences),
            'feat': (batch.images.features, target_regions.float()),
        },
        matched_label=matched.long(),
        ans=answers,
    ).loss
    expected.backward()
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)
    gradients = {
        converters.lxmert.released_name(name): parameter.grad
        for name, parameter in source.named_parameters()
    }
    for name, parameter in model.named_parameters():
        expected_gradient = gradients[converters.lxmert.their_name(name)]
        actual = parameter.grad
        if name.endswith(('position_embeddings.weight', 'token_type_embeddings.weight')):
            actual, expected_gradient = (
                actual[1:],
                expected_gradient[1:],
            )  # their row 0 never learns
        torch.testing.assert_close(actual, expected_gradient, atol=1e-5, rtol=1e-4, msg=name)


def test_answers_equal_those_of_transformers(build, answer_list, region_batch):
    model = build('LxmertVQA', dict(type='AnswerTableHead', answer_list=answer_list)).eval()
    source = make_transformers_model(LxmertForQuestionAnswering).eval()
    assert not load(model, source)
    batch = region_batch()
    expected = source(**transformers_arguments(batch)).question_answering_score
    torch.testing.assert_close(model(batch), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize('dialect', ['released', 'transformers'])
def test_export_and_conversion_are_inverse(build_pretrainer, dialect):
    model = build_pretrainer(TASKS)
    exported, unconverted = converters.lxmert.export(model.state_dict(), dialect)
    assert not unconverted
    if dialect == 'transformers':
        make_transformers_model(LxmertForPreTraining).load_state_dict(exported)  # strict
    else:
        exported = {f'module.{name}': value for name, value in exported.items()}
        assert {'module.bert.encoder.visn_fc.visn_fc.weight', 'module.cls.predictions.bias'} < set(
            exported
        )
        exported = {name.removeprefix('module.'): value for name, value in exported.items()}
    target = {name: torch.zeros_like(x) for name, x in model.state_dict().items()}
    converted, unconverted, missing = converters.lxmert.convert(exported, target)
    assert not unconverted and not missing
    for name, value in model.state_dict().items():
        if not name.endswith('_extra_state'):
            assert converted[name].equal(value)


def test_a_folder_saved_by_transformers_is_read(build_pretrainer, tmp_path):
    source = make_transformers_model(LxmertForPreTraining)
    source.save_pretrained(tmp_path)
    weights = converters.lxmert.read_weights(tmp_path / 'model.safetensors')
    model = build_pretrainer(TASKS)
    converted, unconverted, missing = converters.lxmert.convert(weights, model.state_dict())
    assert not unconverted and not missing
    expected = source.answer_head.logit_fc[3].weight
    assert converted['heads.answers.classifier.3.weight'].equal(expected)


def test_nothing_loaded_is_an_error(build_pretrainer):
    target = build_pretrainer(TASKS).state_dict()
    with pytest.raises(ValueError, match='none of the weights belongs to the model'):
        converters.lxmert.convert({'visual_encoder.cls_token': torch.zeros(1)}, target)
    with pytest.raises(ValueError, match='is this a checkpoint of one'):
        converters.lxmert.export({'similarity.output.weight': torch.zeros(1)}, 'released')


def test_weights_of_another_size_are_an_error_that_names_the_answer_list(build_pretrainer):
    model = build_pretrainer(TASKS)
    weights, _ = converters.lxmert.export(model.state_dict(), 'released')
    weights['answer_head.logit_fc.3.weight'] = torch.zeros(7, 2 * WIDTH)
    with pytest.raises(ValueError, match='another answer_list'):
        converters.lxmert.convert(weights, model.state_dict())


def test_separate_cross_attentions_cannot_be_exported(backbone, preprocessor, heads):
    model = MODELS.build(
        dict(
            type='LxmertPretrainer',
            data_preprocessor=preprocessor,
            heads=heads(['mlm']),
            backbone=backbone(share_cross_attention=False),
        )
    )
    with pytest.raises(ValueError, match='share_cross_attention=False'):
        converters.lxmert.export(model.state_dict(), 'released')


def test_a_file_is_converted_with_and_without_module(
    build_pretrainer, backbone, preprocessor, heads, region_batch, tmp_path, monkeypatch
):
    config = tmp_path / 'tiny.py'
    Config(
        dict(
            model=dict(
                type='LxmertPretrainer',
                data_preprocessor=preprocessor,
                backbone=backbone(),
                heads=heads(TASKS),
            )
        )
    ).dump(config)
    source, batch = build_pretrainer(TASKS).eval(), region_batch()
    weights, _ = converters.lxmert.export(source.state_dict(), 'released')
    for prefix in ('', 'module.'):
        file, out = tmp_path / f'{prefix}source.pth', tmp_path / f'{prefix}out.pth'
        torch.save({prefix + name: value for name, value in weights.items()}, file)
        monkeypatch.setattr('sys.argv', ['lxmert.py', str(file), str(out), '--config', str(config)])
        lxmert.main()
        model = build_pretrainer(TASKS).eval()
        model.load_state_dict(torch.load(out, weights_only=True)['state_dict'])  # strict
        assert model(batch).text_tokens.equal(source(batch).text_tokens)


def test_the_published_model_has_228_051_752_parameters(tmp_path, vocabulary):
    config = Config.fromfile('configs/lxmert/pretrain.py').model
    answers = tmp_path / 'all_ans.json'
    answers.write_text(json.dumps([f'answer {index}' for index in range(9500)]))
    config.heads.answers.answer_list = str(answers)
    config.data_preprocessor.tokenizer.pretrained = vocabulary
    with torch.device('meta'):
        model = MODELS.build(config)
    assert sum(p.numel() for p in model.parameters()) == 228_051_752
    assert sum(p.numel() for p in model.backbone.parameters()) == 207_936_768

"""Generated and ranked answers against transformers' decoder and literal loops."""

import json
from datetime import timedelta
from functools import lru_cache
from importlib.util import find_spec

import pytest
import torch
from torch import distributed
from torch.multiprocessing import start_processes
from transformers import BertConfig, BertLMHeadModel

from xmodal.engine.sharding import ShardedModel
from xmodal.lora import to_lora_names
from xmodal.models import AlbefVQA
from xmodal.models.albef.vqa import _encode_question
from xmodal.registry import MODELS, register_all

WIDTH = 32
LONGEST = 7  # answer: [CLS] and its word pieces have the 8 positions of the text encoder
ANSWERS = [
    'word1',
    'word2',
    'word1 word2',
    'word1 word3',
    'word4 word5 word6',
    'word4',
    'word7 word1',
    'word8',
    'word2 word9',
]


@pytest.fixture
def make_model(config, tmp_path):
    """A tiny model, with an answer list where one is given.

    Its decoder's weights get the deviation ``spread``: with the initial ones all answers are about
    equally likely.
    """

    def make(streams='both', answers=None, momentum=0.9, dropout=0.0, spread=0.3, **options):
        base = config(streams=streams, dropout=dropout)
        options.setdefault('max_answer_length', LONGEST)
        if answers:
            file = tmp_path / 'answer_list.json'
            file.write_text(json.dumps(answers))
            options['answer_list'] = str(file)
        model = AlbefVQA(base['data_preprocessor'], base['backbone'], momentum=momentum, **options)
        for parameter in model.decoder.parameters() if spread else ():
            torch.nn.init.normal_(parameter, std=spread)
        if model.teacher:
            model.teacher.copy_from(model.online_modules())
        return model

    return make


@pytest.fixture
def question_batch(samples):
    """Makes a batch of questions with answers and weights, by the preprocessor of a model."""

    def make(
        model,
        answers_by_question=(
            ('word1', 'word4 word5 word6'),
            ('word2',),
            ('word8', 'word7', 'word1'),
        ),
    ):
        data = samples([f'word{10 + i} word20' for i in range(len(answers_by_question))])
        for sample, answers in zip(data['data_samples'], answers_by_question, strict=True):
            sample.answers = list(answers)
            sample.answer_weights = [1 / (i + 2) for i in range(len(answers))]
        return model.data_preprocessor(data, False)

    return make


@lru_cache(maxsize=1)
def to_transformers(decoder):
    """transformers' decoder with equal weights."""
    layers = decoder.layers
    reference = BertLMHeadModel(
        BertConfig(
            vocab_size=40,
            hidden_size=WIDTH,
            num_hidden_layers=len(layers),
            num_attention_heads=2,
            intermediate_size=4 * WIDTH,
            max_position_embeddings=8,
            is_decoder=True,
            add_cross_attention=True,
        )
    ).eval()
    reference.bert.embeddings.load_state_dict(decoder.embeddings.state_dict())
    for layer, target_layer in zip(layers, reference.bert.encoder.layer, strict=True):
        for attention, norm, target in (
            (layer.self_attention, layer.self_norm, target_layer.attention),
            (layer.cross_attention, layer.cross_norm, target_layer.crossattention),
        ):
            for name, projection in (
                ('query', attention.q_proj),
                ('key', attention.k_proj),
                ('value', attention.v_proj),
            ):
                getattr(target.self, name).load_state_dict(projection.state_dict())
            if isinstance(attention.out_proj, torch.nn.Identity):
                torch.nn.init.eye_(target.output.dense.weight)
                torch.nn.init.zeros_(target.output.dense.bias)
            else:
                target.output.dense.load_state_dict(attention.out_proj.state_dict())
            target.output.LayerNorm.load_state_dict(norm.state_dict())
        target_layer.intermediate.dense.load_state_dict(layer.feed_forward.fc1.state_dict())
        target_layer.output.dense.load_state_dict(layer.feed_forward.fc2.state_dict())
        target_layer.output.LayerNorm.load_state_dict(layer.feed_forward.norm.state_dict())
    words = reference.cls.predictions
    words.transform.dense.load_state_dict(decoder.words.transform.state_dict())
    words.transform.LayerNorm.load_state_dict(decoder.words.norm.state_dict())
    with torch.no_grad():
        words.decoder.weight.copy_(decoder.embeddings.word_embeddings.weight)
        words.decoder.bias.copy_(decoder.words.bias)
    return reference


def word_logits(model, question, ids):
    """Logits (L, vocabulary) of one question and one answer, by transformers."""
    embeddings, mask = question.embeddings, question.attention_mask
    return to_transformers(model.decoder)(
        torch.tensor([ids]), encoder_hidden_states=embeddings, encoder_attention_mask=mask.long()
    ).logits[0]


def pieces(model, text):
    tokenizer = model.data_preprocessor.tokenizer
    inner = tokenizer(text, add_special_tokens=False)['input_ids']
    return [tokenizer.cls_token_id, *inner, tokenizer.sep_token_id]


def word_losses(model, question, text):
    """−log p of each word piece after [CLS], one at a time."""
    ids = pieces(model, text)
    logits = word_logits(model, question, ids[:-1]).log_softmax(-1)
    return [-logits[position, word] for position, word in enumerate(ids[1:])]


def each_question(model, batch):
    question = _encode_question(model.backbone, batch)
    return [question.select(torch.tensor([row])) for row in range(len(question.embeddings))]


@pytest.mark.parametrize('streams', ['both', 'text'])
@torch.no_grad()
def test_the_decoder_is_transformers_decoder(make_model, question_batch, streams):
    model = make_model(streams).eval()
    question = _encode_question(model.backbone, question_batch(model)['inputs'])
    ids = torch.randint(5, 40, (3, 2, 4))
    logits = model.decoder.logits(model.decoder(ids, question))
    for row in range(3):
        one_question = question.select(torch.tensor([row]))
        for answer in range(2):
            expected = word_logits(model, one_question, ids[row, answer].tolist())
            torch.testing.assert_close(logits[row, answer], expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_the_loss_is_the_weighted_sum_over_answers_and_words_a_question(make_model, question_batch):
    model = make_model().eval()
    data = question_batch(model)
    expected = 0
    for question, sample in zip(
        each_question(model, data['inputs']), data['data_samples'], strict=True
    ):
        for text, weight in zip(sample.answers, sample.answer_weights, strict=True):
            expected += weight * sum(word_losses(model, question, text))
    loss = model(**data, mode='loss')['loss_answer']
    torch.testing.assert_close(loss, expected / 3, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_distillation_adds_the_teachers_soft_targets(make_model, question_batch):
    model = make_model().eval()
    data = question_batch(model)
    for parameter in model.teacher.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    expected = 0
    questions = each_question(model, data['inputs'])
    teacher = model.teacher.module
    teacher_questions = _encode_question(teacher['backbone'], data['inputs'])
    for row, sample in enumerate(data['data_samples']):
        for text, weight in zip(sample.answers, sample.answer_weights, strict=True):
            ids = torch.tensor([[pieces(model, text)]])
            teacher_question = teacher_questions.select(torch.tensor([row]))
            decoder = teacher['decoder']
            soft = decoder.logits(decoder(ids[..., :-1], teacher_question))[0, 0].softmax(-1)
            logits = model.decoder.logits(model.decoder(ids[..., :-1], questions[row]))[0, 0]
            hard = torch.nn.functional.one_hot(ids[0, 0, 1:], 40)
            expected -= weight * ((0.6 * hard + 0.4 * soft) * logits.log_softmax(-1)).sum()
    model.distillation_weight = 0.4
    loss = model(**data, mode='loss')['loss_answer']
    torch.testing.assert_close(loss, expected / 3, atol=1e-4, rtol=1e-4)


def test_gradients_reach_every_parameter_but_the_contrastive_projections(
    make_model, question_batch
):
    model = make_model(dropout=0.1).train()
    model.distillation_weight = 0.4
    with torch.autocast('cpu', torch.bfloat16):
        loss = model(**question_batch(model), mode='loss')['loss_answer']
    loss.backward()
    idle = ('backbone.image_proj', 'backbone.text_proj')
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and not name.startswith(idle):
            assert parameter.grad is not None and parameter.grad.isfinite().all(), name
    assert all(parameter.grad is None for parameter in model.teacher.parameters())


@pytest.mark.parametrize('answer_batch', [1, 7, 1000])
@torch.no_grad()
def test_ranking_is_a_loop_over_all_answers(make_model, question_batch, answer_batch):
    model = make_model(answers=ANSWERS, answer_batch=answer_batch, report=4).eval()
    data = question_batch(model)
    predicted = model(**data, mode='predict')
    for question, sample in zip(each_question(model, data['inputs']), predicted, strict=True):
        likelihood = {
            text: float(torch.exp(-sum(word_losses(model, question, text)))) for text in ANSWERS
        }
        best = sorted(ANSWERS, key=likelihood.get, reverse=True)[:4]
        assert [text for text, _ in sample.top_answers] == best
        assert [p for _, p in sample.top_answers] == pytest.approx(
            [likelihood[text] for text in best], rel=1e-3
        )
        assert sample.predicted == best[0]


@torch.no_grad()
def test_candidates_are_the_answers_with_the_likeliest_first_word(make_model, question_batch):
    model = make_model(answers=ANSWERS, candidates=3, report=9).eval()
    data = question_batch(model)
    predicted = model(**data, mode='predict')
    for question, sample in zip(each_question(model, data['inputs']), predicted, strict=True):
        losses = {text: word_losses(model, question, text) for text in ANSWERS}
        # Sorting is stable: answers that begin alike stay in the order of the list.
        candidates = sorted(ANSWERS, key=lambda text: losses[text][0])[:3]
        best = sorted(candidates, key=lambda text: sum(losses[text]))
        assert [text for text, _ in sample.top_answers] == best


@torch.no_grad()
def test_keys_and_values_of_a_question_are_computed_once_for_all_answers(
    make_model, question_batch
):
    model = make_model(answers=ANSWERS, answer_batch=1000).eval()
    shapes = []
    for layer in model.decoder.layers:
        for projection in (layer.cross_attention.k_proj, layer.cross_attention.v_proj):
            projection.register_forward_hook(lambda _, inputs, __: shapes.append(inputs[0].shape))
        layer.cross_attention.register_forward_hook(
            lambda _, inputs, __: shapes.append(inputs[1].key.shape)
        )
    data = question_batch(model)
    model(**data, mode='predict')
    questions, words = data['inputs'].input_ids.shape
    assert shapes and set(shapes) == {(questions, words, WIDTH)}


@torch.no_grad()
def test_answers_are_generated_word_by_word_up_to_sep(make_model, question_batch):
    model = make_model(max_answer_length=5).eval()
    tokenizer = model.data_preprocessor.tokenizer
    data = question_batch(model)
    predicted = model(**data, mode='predict')
    for question, sample in zip(each_question(model, data['inputs']), predicted, strict=True):
        ids, probability = [tokenizer.cls_token_id], 1.0
        while len(ids) < 7 and ids[-1] != tokenizer.sep_token_id:
            best = word_logits(model, question, ids)[-1].softmax(-1).max(-1)
            ids.append(int(best.indices))
            probability *= float(best.values)
        assert sample.predicted == tokenizer.decode(ids, skip_special_tokens=True)
        assert sample.top_answers == [(sample.predicted, pytest.approx(probability, rel=1e-3))]


@pytest.mark.parametrize('name', ['candidates', 'report', 'max_answer_length'])
def test_numbers_of_answers_are_at_least_1(make_model, name):
    with pytest.raises(ValueError, match=f'model.{name}=0, expected at least 1'):
        make_model(**{name: 0})


@torch.no_grad()
def test_the_longest_answer_has_a_position_for_each_word_piece(make_model, question_batch):
    model = make_model(max_answer_length=LONGEST).eval()
    no_word = 1e3 * (torch.arange(40) < 5)  # [SEP] and other special ones
    logits, model.decoder.logits = model.decoder.logits, lambda x: logits(x) - no_word
    data = question_batch(model, [(' '.join(['word1'] * 20),)])
    (sample,) = model(**data, mode='predict')
    assert len(sample.predicted.split()) == LONGEST + 1  # all that could have been [SEP]
    assert model(**data, mode='loss')['loss_answer'].isfinite()
    keys = r'model\.max_answer_length=8 .*text_encoder\.config\.max_position_embeddings=8:'
    with pytest.raises(ValueError, match=keys):
        make_model(max_answer_length=LONGEST + 1)


@torch.no_grad()
def test_a_generated_answer_has_no_spaces_beside_marks(make_model, question_batch, monkeypatch):
    model = make_model(max_answer_length=2).eval()
    data = question_batch(model, [('word1',)])
    tokenizer = model.data_preprocessor.tokenizer
    monkeypatch.setattr(tokenizer, 'batch_decode', lambda ids, **_: ['10 : 30'] * len(ids))
    assert [sample.predicted for sample in model(**data, mode='predict')] == ['10:30']


def test_a_question_without_answers_adds_nothing_to_the_loss(make_model, question_batch):
    model = make_model(momentum=None)
    data = question_batch(model, [(), ('word1', 'word2 word3'), ()])
    loss = model(**data, mode='loss')['loss_answer']
    inputs = data['inputs']
    alone = inputs._replace(**{name: getattr(inputs, name)[1:2] for name in inputs._fields})
    expected = model.loss(alone, data['data_samples'][1:2])['loss_answer'] / 3
    torch.testing.assert_close(loss, expected)
    model.loss(alone, data['data_samples'][:1])['loss_answer'].backward()  # of none at all
    assert not any(x.grad.any() for x in model.parameters() if x.grad is not None)


@pytest.mark.parametrize('answers', [ANSWERS, None])
def test_weights_that_are_not_finite_give_no_answer(make_model, question_batch, answers):
    model = make_model(answers=answers, max_answer_length=5).eval()
    torch.nn.init.constant_(model.backbone.fusion.layers[0].self_norm.weight, torch.nan)
    with torch.no_grad(), pytest.raises(ValueError, match='answers are not finite: the weights'):
        model(**question_batch(model), mode='predict')


def test_it_overfits_a_few_samples(make_model, question_batch):
    listed = ['word1', 'word2', 'word3 word4', 'word5']
    model = make_model(answers=listed, momentum=None, spread=None)
    answers_by_question = ('word1', 'word3 word4', 'word5', 'word2')
    data = question_batch(model, [(answer,) for answer in answers_by_question])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(80):
        optimizer.zero_grad()
        loss = model(**data, mode='loss')['loss_answer']
        loss.backward()
        optimizer.step()
    assert loss < 0.1
    model.eval()
    assert [sample.predicted for sample in model(**data, mode='predict')] == list(
        answers_by_question
    )
    model.answer_list = []
    assert [sample.predicted for sample in model(**data, mode='predict')] == list(
        answers_by_question
    )


def test_a_pre_trained_checkpoint_initialises_backbone_decoder_and_teacher(make_model, build):
    pretrained = build(momentum=0.9)
    for parameter in pretrained.parameters():
        torch.nn.init.normal_(parameter)
    model = make_model()
    result = model.load_state_dict(pretrained.state_dict(), strict=False)
    assert not result.missing_keys
    # As in ALBEF's VQA.py, the teacher's decoder is the teacher's fusion encoder.
    teacher = pretrained.teacher.module
    for decoder, backbone, mlm in (
        (model.decoder, pretrained.backbone, pretrained.heads['mlm']),
        (model.teacher.module['decoder'], teacher['backbone'], teacher['mlm']),
    ):
        for part, source in (
            (decoder.embeddings, backbone.text_encoder.bert.embeddings),
            (decoder.layers, backbone.fusion.layers),
            (decoder.words, mlm),
        ):
            expected = source.state_dict()
            for name, value in part.state_dict().items():
                assert torch.equal(value, expected[name]), name
    backbone = teacher['backbone'].state_dict()
    for name, value in model.teacher.module['backbone'].state_dict().items():
        assert torch.equal(value, backbone[name])


def test_a_checkpoint_with_a_decoder_loads_unchanged(make_model):
    source, model = make_model(), make_model()
    torch.nn.init.normal_(source.decoder.words.bias)
    model.load_state_dict(source.state_dict())
    for name, value in source.state_dict().items():
        assert torch.equal(value, model.state_dict()[name]), name


def test_pretrained_encoders_initialise_the_decoder(make_model):
    model = make_model()
    model.init_weights()
    for copied, source in (
        (model.decoder.layers, model.backbone.fusion.layers),
        (model.decoder.embeddings, model.backbone.text_encoder.bert.embeddings),
    ):
        for name, value in copied.state_dict().items():
            assert torch.equal(value, source.state_dict()[name]), name


@pytest.mark.parametrize(
    ('content', 'error', 'message'),
    [
        (None, FileNotFoundError, 'answer_list: .* does not exist.*docs/tasks/vqa.md'),
        ('{"yes": 1}', ValueError, 'list.json cannot be read: .*expected a list of texts'),
        ('["word1", "word1 word2 word3"]', ValueError, "'word1 word2 word3', of 3 word pieces"),
        ('["word1", ""]', ValueError, "'', of 0 word pieces; expected 1 to .*length=2"),
    ],
)
def test_an_unusable_answer_list_is_an_error(config, tmp_path, content, error, message):
    file = tmp_path / 'list.json'
    if content:
        file.write_text(content)
    base = {name: config()[name] for name in ('data_preprocessor', 'backbone')}
    options = dict(type='AlbefVQA', answer_list=str(file), max_answer_length=2)
    with pytest.raises(error, match=message):
        MODELS.build({**base, **options})


@pytest.mark.parametrize('frozen', [True, ['bert.embeddings', 'bert.encoder']])
def test_beside_a_frozen_text_encoder_and_fusion_the_decoder_learns(config, frozen):
    base = config()
    base['backbone']['fusion']['frozen'] = True
    base['backbone']['text_encoder']['frozen'] = frozen
    model = AlbefVQA(base['data_preprocessor'], base['backbone'], max_answer_length=LONGEST).train()
    encoder = model.backbone.text_encoder
    assert not any(x.requires_grad for x in encoder.parameters())
    assert not encoder.bert.embeddings.dropout.training
    assert all(x.requires_grad for x in model.decoder.parameters())
    assert all(x.training for x in model.decoder.modules())  # with dropout


@pytest.mark.skipif(not find_spec('peft'), reason='LoRA needs the extra lora')
def test_beside_lora_in_fusion_the_decoder_has_whole_weights(config, build):
    base, pretrained = config(), build(momentum=None)
    base['backbone']['fusion']['lora'] = dict(r=2, target_modules=['q_proj', 'fc1'])
    model = AlbefVQA(base['data_preprocessor'], base['backbone'], max_answer_length=LONGEST)
    for parameter in pretrained.parameters():
        torch.nn.init.normal_(parameter)
    weights = to_lora_names(pretrained.state_dict(), model.state_dict())
    assert not any(
        'lora_' not in name
        for name in model.load_state_dict(dict(weights), strict=False).missing_keys
    )
    expected = pretrained.backbone.fusion.layers.state_dict()
    for layers in (model.decoder.layers, model.teacher.module['decoder'].layers):
        torch.testing.assert_close(dict(layers.state_dict()), dict(expected), rtol=0, atol=0)
    assert all(x.requires_grad for x in model.decoder.parameters())

    torch.nn.init.ones_(model.backbone.fusion.layers[0].feed_forward.fc1.lora_B.default.weight)
    model.decoder.copy_from(model.backbone.text_encoder, model.backbone.fusion)
    fc1 = model.backbone.fusion.layers[0].feed_forward.fc1
    torch.testing.assert_close(model.decoder.layers[0].feed_forward.fc1.weight, fc1.weight)

    whole = model.state_dict()
    without_decoder = {name: x for name, x in whole.items() if 'decoder.' not in name}
    with pytest.raises(ValueError, match='is a matrix of LoRA.*merge it'):
        model.load_state_dict(without_decoder, strict=False)


NARROW = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
WIDE = {**NARROW, 'hidden_size': WIDTH}


@pytest.mark.parametrize(
    ('text_encoder', 'adapter', 'message'),
    [
        (
            dict(type='TransformersTextEncoder', config=dict(WIDE, model_type='bert')),
            None,
            "found backbone.text_encoder.type='TransformersTextEncoder'.*or AlbefVectorVQA",
        ),
        (
            dict(type='BertTextEncoder', config=dict(NARROW, vocab_size=40)),
            dict(type='TokenAdapter'),
            'words are 16 wide and fusion.embed_dims=32',
        ),
    ],
)
def test_a_text_encoder_that_the_decoder_cannot_copy_is_an_error(
    config, text_encoder, adapter, message
):
    base = config()
    backbone = {**base['backbone'], 'text_encoder': text_encoder, 'text_adapter': adapter}
    with pytest.raises(ValueError, match=message):
        AlbefVQA(base['data_preprocessor'], backbone)


def end_at_once(model):
    """Lets every answer be [SEP] alone."""
    logits, words = model.decoder.logits, torch.arange(model.data_preprocessor.vocab_size)
    likely = 1e3 * (words == model.data_preprocessor.tokenizer.sep_token_id)
    model.decoder.logits = lambda tokens: logits(tokens) + likely


@torch.no_grad()
def generate_on_rank(rank, folder):
    register_all()
    model, data = torch.load(f'{folder}/model.pth', weights_only=False)
    distributed.init_process_group(
        'gloo', f'file://{folder}/store', timedelta(seconds=30), rank=rank, world_size=2
    )
    if rank == 0:
        end_at_once(model)
    ShardedModel(model, ['AnswerDecoderLayer'])
    answers = [sample.top_answers for sample in model(**data, mode='predict')]
    distributed.barrier()  # both have gathered the layers equally often
    torch.save(answers, f'{folder}/{rank}.pth')
    distributed.destroy_process_group()


@torch.no_grad()
def test_ranks_that_share_layers_wait_for_the_longest_answer(make_model, question_batch, tmp_path):
    model = make_model(max_answer_length=5).eval()
    data = question_batch(model)
    torch.save((model, data), tmp_path / 'model.pth')  # too many tensors for a pipe
    start_processes(generate_on_rank, (str(tmp_path),), nprocs=2, start_method='forkserver')
    longer = [sample.top_answers for sample in model(**data, mode='predict')]
    end_at_once(model)
    shorter = [sample.top_answers for sample in model(**data, mode='predict')]
    for rank, expected in enumerate([shorter, longer]):
        answers = torch.load(tmp_path / f'{rank}.pth', weights_only=True)
        for ((text, probability),), ((wanted, likely),) in zip(answers, expected, strict=True):
            assert text == wanted and probability == pytest.approx(likely, rel=1e-3)
    assert not any(text for ((text, _),) in shorter) and any(text for ((text, _),) in longer)

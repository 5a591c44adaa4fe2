"""LXMERT fine-tuned: answers chosen from a table, and statements about two images."""

import json

import pytest
import torch
from labelled import labelled
from torch.nn.functional import gelu, layer_norm

from xmodal.structures import ImageTextBatch

HEADS = ('mlm', 'objects', 'matching', 'answers')


@pytest.fixture
def build_vqa(build, answer_list):
    """Builds a tiny model for questions."""

    def make(loss='bce', file=answer_list, **model):
        head = dict(type='AnswerTableHead', answer_list=file, loss=loss)
        return build('LxmertVQA', head, report=2, **model)

    return make


@pytest.fixture
def build_nlvr(build):
    """Builds a tiny model for statements about two images."""
    return lambda: build('LxmertNLVR', dict(type='PooledClassificationHead'))


def select_text(batch, text, images):
    """The part of a batch with one text and its images."""
    regions = batch.images
    selected = regions._replace(
        features=regions.features[images],
        attention_mask=regions.attention_mask[images],
        boxes=regions.boxes[images],
        labels=None,
    )
    rest = [x[text : text + 1] for x in batch[1:]]
    return ImageTextBatch(selected, *rest)


@pytest.mark.parametrize('loss', ['ce', 'bce'])
def test_it_overfits_a_few_questions_and_predicts_their_answers(
    build_vqa, region_batch, questions, loss
):
    model, batch = build_vqa(loss), region_batch(size=6)
    answers = ['yes', 'no', 'red', 'blue', '2', 'yes']
    samples = questions(*answers)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        logs = model(batch, samples, mode='loss')
        optimizer.zero_grad()
        logs['loss_answers'].backward()
        optimizer.step()
    assert set(logs) == {'loss_answers', 'answer_accuracy'} and logs['answer_accuracy'] == 1
    predicted = model.eval()(batch, samples, mode='predict')
    assert [sample.predicted for sample in predicted] == answers
    for sample in predicted:
        best, second = sample.top_answers
        assert best[0] == sample.predicted and 0 <= second[1] <= best[1] <= 1


def test_each_answer_starts_with_its_weights_of_the_pre_training(
    build_pretrainer, build_vqa, region_batch, tmp_path
):
    source, batch = build_pretrainer(HEADS).eval(), region_batch()
    for parameter in source.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    file = tmp_path / 'others.json'
    file.write_text(json.dumps(['dog', 'Blue', 'yes']))
    model = build_vqa(file=str(file)).eval()
    model.load_state_dict(source.state_dict(), strict=False)
    pooled = source.backbone.pool(source(batch))
    expected = source.heads['answers'](pooled)
    actual = model(batch)
    torch.testing.assert_close(actual[:, [1, 2]], expected[:, [3, 0]], atol=1e-6, rtol=1e-5)
    assert (actual[:, 0] == 0).all()


@torch.no_grad()
def test_attention_is_that_of_cls_in_the_last_layer_to_each_real_region(
    build_vqa, region_batch, questions
):
    model, batch = build_vqa(report_attention=True).eval(), region_batch(size=3)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1, 3:] = False
    batch = batch._replace(images=batch.images._replace(attention_mask=mask))
    entered = []  # what enters the last layer: images, and texts
    model.backbone.fusion.layers[-1].register_forward_pre_hook(
        lambda _, inputs: entered.extend(inputs[:2])
    )
    samples = model(batch, questions('yes', 'no', 'red'), mode='predict')
    image, text = entered
    attention = model.backbone.fusion.layers[-1].cross_attention[0].attention
    for row, sample in enumerate(samples):
        count = int(mask[row].sum())
        query = attention.q_proj(text.embeddings[row, 0])
        keys = attention.k_proj(image.embeddings[row, :count])
        expected = torch.zeros(count)
        for head in range(2):
            part = slice(16 * head, 16 * (head + 1))
            logits = torch.stack([query[part] @ key[part] / 16**0.5 for key in keys])
            expected += logits.softmax(0) / 2
        assert sample.attention.shape == (count, 5)
        assert sample.attention[:, :4].equal(batch.images.boxes[row, :count])
        torch.testing.assert_close(sample.attention[:, 4], expected, atol=1e-5, rtol=1e-4)
        assert expected.max() - expected.min() > 0.01


@torch.no_grad()
def test_attention_is_reported_only_when_asked_for_and_changes_no_answer(
    build_vqa, region_batch, questions
):
    model, batch = build_vqa().eval(), region_batch(size=4)
    plain = model(batch, questions(*['yes'] * 4), mode='predict')
    assert not any('attention' in sample for sample in plain)
    model.report_attention = True
    asked = model(batch, questions(*['yes'] * 4), mode='predict')
    for one, other in zip(plain, asked, strict=True):
        assert [answer for answer, _ in one.top_answers] == [a for a, _ in other.top_answers]


@torch.no_grad()
def test_each_image_is_fused_with_the_statement_alone_and_the_head_reads_both(
    build_nlvr, region_batch
):
    model, batch = build_nlvr().eval(), region_batch(size=3, images_per_text=2)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    actual = model(batch)
    head = model.heads['classification'].classifier
    for text in range(3):
        pooled = []
        for image in (2 * text, 2 * text + 1):
            row = select_text(batch, text, [image])
            fused = model.backbone.fuse(
                model.backbone.encode_image(row.images),
                model.backbone.encode_text(row.input_ids, row.attention_mask),
            )
            pooled.append(model.backbone.pool(fused)[0])
        hidden = gelu(head[0](torch.cat(pooled)))
        hidden = layer_norm(hidden, hidden.shape, head[2].weight, head[2].bias, 1e-12)
        torch.testing.assert_close(actual[text], head[3](hidden), atol=1e-5, rtol=1e-5)


def test_it_overfits_a_few_statements(build_nlvr, region_batch):
    model, batch = build_nlvr(), region_batch(size=6, images_per_text=2)
    samples = labelled([0, 1, 1, 0, 1, 0])
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(40):
        logs = model(batch, samples, mode='loss')
        optimizer.zero_grad()
        logs['loss_classification'].backward()
        optimizer.step()
    assert logs['accuracy'] == 1 and logs['loss_classification'] < 0.1
    predicted = model.eval()(batch, samples, mode='predict')
    assert [sample.predicted for sample in predicted] == [0, 1, 1, 0, 1, 0]


def test_it_starts_with_the_backbone_of_the_pre_training(build_pretrainer, build_nlvr):
    source, model = build_pretrainer(HEADS), build_nlvr()
    result = model.load_state_dict(source.state_dict(), strict=False)
    assert all(name.startswith('heads.classification') for name in result.missing_keys)
    assert model.backbone.pooler.weight.equal(source.backbone.pooler.weight)


def test_another_number_of_images_is_refused(build_nlvr, region_batch):
    with pytest.raises(ValueError, match='3 images for 3 texts, but head.images=2'):
        build_nlvr()(region_batch(size=3))


def test_in_fine_tuning_only_the_image_stream_of_the_last_layer_gets_no_gradient(
    build_vqa, region_batch, questions
):
    model = build_vqa()
    model(region_batch(), questions(*['yes'] * 4), mode='loss')['loss_answers'].backward()
    idle = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert idle and all(name.startswith('backbone.fusion.layers.1.image_layer') for name in idle)


def test_two_images_of_a_question_are_refused(build_vqa, region_batch):
    batch = region_batch(size=4)
    batch = batch._replace(input_ids=batch.input_ids[:2], attention_mask=batch.attention_mask[:2])
    with pytest.raises(ValueError, match='4 images for 2 texts, expected one for each'):
        build_vqa().predict(batch, labelled(['', '']))

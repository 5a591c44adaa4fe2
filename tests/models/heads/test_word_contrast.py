"""The contrast of a caption's words against a loop over its words."""

import pytest
import torch
from contrastive_step import make_step
from test_anchor_contrast import make_model
from torch.nn.functional import cosine_similarity

from xmodal.models.heads import WordContrastHead

GROUPS, TEMPERATURE = 2, 0.2


def unit_groups(token):
    """A token whose groups have length 1."""
    return torch.cat([part / part.norm() for part in token.chunk(GROUPS)])


def literal_logits(patches, words):
    """What each word sees of an image, compared with all words of its caption."""
    rows = []
    for word in words:
        nearness = torch.stack([unit_groups(word) @ unit_groups(p) / GROUPS for p in patches])
        attention = (nearness / TEMPERATURE).softmax(0)
        seen = sum(a * unit_groups(p) for a, p in zip(attention, patches, strict=True))
        rows.append([float(cosine_similarity(seen, unit_groups(w), 0)) for w in words])
    return torch.tensor(rows) / TEMPERATURE


@pytest.mark.parametrize('padded', [False, True])
def test_the_loss_is_that_of_a_softmax_over_the_words_of_each_caption(padded):
    step = make_step()
    counts = [6] * 4
    if padded:
        counts = [6, 3, 1, 5]
        mask = torch.arange(7)[None] < 1 + torch.tensor(counts)[:, None]
        tokens = step.image.tokens._replace(attention_mask=mask)
        step = step._replace(image=step.image._replace(tokens=tokens))
    losses, right = [], []
    texts = step.text.tokens
    for image, text, count, mask in zip(
        step.image.tokens.embeddings, texts.embeddings, counts, texts.attention_mask, strict=True
    ):
        words = text[mask][1:]
        logits = literal_logits(image[1 : 1 + count], words)
        for index in range(len(words)):
            for row in (logits[index], logits[:, index]):
                losses.append(-float(row.log_softmax(0)[index]) / 2)
            right.append(float(logits[index].argmax() == index))
    head, model = WordContrastHead(TEMPERATURE, loss_weight=2.0), make_model(groups=GROUPS)
    head.check(model)
    found = head.loss(model, step)
    assert found['loss_words'].item() == pytest.approx(2 * sum(losses) / len(right), rel=1e-4)
    assert found['words_accuracy'].item() == pytest.approx(sum(right) / len(right))


def test_the_gradient_is_finite_and_reaches_both_encoders():
    step = make_step()
    for encoded in (step.image, step.text):
        encoded.tokens.embeddings.requires_grad_()
    head, model = WordContrastHead(groups=GROUPS), make_model()
    head.check(model)
    head.loss(model, step)['loss_words'].backward()
    for encoded in (step.image, step.text):
        gradient = encoded.tokens.embeddings.grad
        assert gradient.isfinite().all() and gradient.any()


def test_texts_of_cls_alone_have_no_loss():
    step = make_step()
    tokens = step.text.tokens
    alone = tokens._replace(embeddings=tokens.embeddings[:, :1], attention_mask=None)
    mask = torch.zeros(tokens.embeddings.shape[:2], dtype=torch.bool)
    mask[:, 0] = True
    for texts in (alone, tokens._replace(attention_mask=mask)):
        step = step._replace(text=step.text._replace(tokens=texts))
        assert WordContrastHead(groups=GROUPS).loss(make_model(), step)['loss_words'] == 0


def test_an_error_names_this_head():
    with pytest.raises(ValueError, match='model.heads has WordContrastHead'):
        WordContrastHead().check(make_model())
    with pytest.raises(ValueError, match=r'WordContrastHead.groups=3 must divide'):
        WordContrastHead(groups=3).check(make_model())

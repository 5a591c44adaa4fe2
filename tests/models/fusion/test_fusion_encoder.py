"""The fusion encoder: against BERT, pair by pair and with every position."""

import pytest
import torch
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertLayer

from xmodal.models.fusion import FusionEncoder
from xmodal.models.layers import NO_TERMS
from xmodal.models.necks import NoPosition
from xmodal.structures import CrossTerms, LowRank, Tokens

WIDTH, DEPTH = 32, 2
NONE = NoPosition(DEPTH, WIDTH, 2)
BERT_NAMES = {
    'self_attention.q_proj': 'attention.self.query',
    'self_attention.k_proj': 'attention.self.key',
    'self_attention.v_proj': 'attention.self.value',
    'self_attention.out_proj': 'attention.output.dense',
    'self_norm': 'attention.output.LayerNorm',
    'cross_attention.q_proj': 'crossattention.self.query',
    'cross_attention.k_proj': 'crossattention.self.key',
    'cross_attention.v_proj': 'crossattention.self.value',
    'cross_attention.out_proj': 'crossattention.output.dense',
    'cross_norm': 'crossattention.output.LayerNorm',
    'feed_forward.fc1': 'intermediate.dense',
    'feed_forward.fc2': 'output.dense',
    'feed_forward.norm': 'output.LayerNorm',
}


def make_encoder(streams='both', depth=DEPTH, dropout=0.0, **others):
    encoder = FusionEncoder(depth, WIDTH, num_heads=2, dropout=dropout, streams=streams, **others)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return encoder


def bert_layers(encoder):
    config = BertConfig(
        hidden_size=WIDTH,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        is_decoder=True,
        add_cross_attention=True,
        attn_implementation='eager',
    )
    layers = []
    for index, fusion_layer in enumerate(encoder.layers):
        layer, renamed = BertLayer(config, layer_idx=index).eval(), {}
        for name, value in fusion_layer.state_dict().items():
            module, parameter = name.rsplit('.', 1)
            renamed[f'{BERT_NAMES[module]}.{parameter}'] = value
        layer.load_state_dict(renamed)
        layers.append(layer)
    return layers


@torch.no_grad()
def test_the_albef_layout_without_position_is_bert_with_cross_attention(tokens):
    image, text = tokens(batch=3)
    encoder = make_encoder('text').eval()
    expected = text.embeddings
    padding = torch.zeros(3, 1, 1, 6).masked_fill(
        ~text.attention_mask[:, None, None], torch.finfo(torch.float32).min
    )
    for layer in bert_layers(encoder):
        expected = layer(expected, padding, image.embeddings)
    actual = encoder(image, text, NONE)
    torch.testing.assert_close(actual.text_tokens, expected, atol=1e-4, rtol=1e-4)
    assert actual.image_tokens.equal(image.embeddings)


def test_only_the_albef_layout_projects_the_cross_attention():
    for streams, projects in (('text', True), ('both', False)):
        names = [name for name, _ in make_encoder(streams).named_parameters()]
        assert any('cross_attention.out_proj' in name for name in names) == projects


@torch.no_grad()
def test_patches_pass_through_the_layers_as_words_do(tokens):
    image, text = tokens(lengths=[6, 6])
    encoder = make_encoder('both', depth=1).eval()
    fused = encoder(image, text, NONE)
    swapped = encoder(text._replace(attention_mask=None), image._replace(attention_mask=None), NONE)
    torch.testing.assert_close(fused.image_tokens, swapped.text_tokens)
    torch.testing.assert_close(fused.text_tokens, swapped.image_tokens)


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_every_position_runs_with_finite_gradients(tokens, build_position, position_name, streams):
    image, text = tokens()
    for part in (image, text):
        part.embeddings.requires_grad_()
    encoder, position = make_encoder(streams), build_position(position_name)
    fused = encoder(image, text, position)
    assert fused.image_tokens.shape == (2, 10, WIDTH)
    assert fused.text_tokens.shape == (2, 6, WIDTH)
    real = text.attention_mask[..., None]
    (fused.image_tokens.square().sum() + (fused.text_tokens * real).square().sum()).backward()
    if streams == 'both':
        used = [*encoder.parameters(), *position.parameters()]
    else:
        used = encoder.parameters()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in used)
    assert image.embeddings.grad.isfinite().all() and image.embeddings.grad.any()
    assert text.embeddings.grad.isfinite().all()
    assert (text.embeddings.grad[~text.attention_mask] == 0).all()


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_padding_changes_nothing(tokens, build_position, position_name, streams):
    image, text = tokens(lengths=[6, 3])
    encoder, position = make_encoder(streams).eval(), build_position(position_name)
    noise = text.embeddings.clone()
    noise[1, 3:] = 100 * torch.randn(3, WIDTH)
    alone = [
        Tokens(image.embeddings[1:], None, image.grid_size),
        Tokens(text.embeddings[1:, :3], text.attention_mask[1:, :3]),
    ]
    actual = encoder(image, text, position)
    noisy = encoder(image, text._replace(embeddings=noise), position)
    short = encoder(*alone, position)
    torch.testing.assert_close(noisy.image_tokens, actual.image_tokens)
    torch.testing.assert_close(noisy.text_tokens[1, :3], actual.text_tokens[1, :3])
    torch.testing.assert_close(short.image_tokens[0], actual.image_tokens[1], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(
        short.text_tokens[0], actual.text_tokens[1, :3], atol=1e-4, rtol=1e-4
    )


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
@pytest.mark.parametrize('mode', ['ace_rpe', 'ace_rpe bias', 'ace_rpe learned', 'uniform'])
def test_a_new_position_changes_no_output(tokens, build_position, mode, streams):
    image, text = tokens()
    encoder = make_encoder(streams).eval()
    expected = encoder(image, text, NONE)
    actual = encoder(image, text, build_position(mode, random=False))
    torch.testing.assert_close(actual.text_tokens, expected.text_tokens)
    torch.testing.assert_close(actual.image_tokens, expected.image_tokens)


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_pairs_are_fused_like_rows_of_a_batch(tokens, build_position, position_name, streams):
    (image, _), (_, text) = tokens(batch=2), tokens(batch=3)
    pairs = torch.tensor([[0, 0], [1, 2], [0, 2], [1, 1], [0, 0]])
    encoder, position = make_encoder(streams).eval(), build_position(position_name)
    actual = encoder(image, text, position, pairs)
    expected = encoder(image.select(pairs[:, 0]), text.select(pairs[:, 1]), position)
    torch.testing.assert_close(actual.text_tokens, expected.text_tokens, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(actual.image_tokens, expected.image_tokens, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize('depth', [1, DEPTH])
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_needed_words_are_computed_as_among_all(
    tokens, build_position, position_name, streams, depth
):
    image, text = tokens(batch=3)
    encoder = make_encoder(streams, depth)
    position = build_position(position_name, depth=depth)
    pairs = torch.tensor([[0, 0], [2, 1], [0, 2], [1, 1]])
    needed = torch.tensor([[0, 3], [2, 0], [1, 2], [0, 1]])
    results = []
    for words in (None, needed):
        encoder.zero_grad()
        leaf = image.embeddings.clone().requires_grad_()
        fused = encoder(
            image._replace(embeddings=leaf), text, position, pairs, need_image=False, words=words
        ).text_tokens
        if words is None:
            fused = torch.stack([fused[row, chosen] for row, chosen in enumerate(needed)])
        fused.square().sum().backward()
        results.append([fused, leaf.grad, *(p.grad.clone() for p in encoder.parameters())])
    for actual, expected in zip(*reversed(results), strict=True):
        torch.testing.assert_close(actual, expected, atol=2e-4, rtol=1e-4)


@torch.no_grad()
def test_without_the_image_stream_the_words_do_not_change(tokens, build_position):
    image, text = tokens()
    encoder, position = make_encoder().eval(), build_position('ace_rpe')
    expected, actual = (encoder(image, text, position, need_image=x) for x in (True, False))
    assert actual.image_tokens is None
    torch.testing.assert_close(actual.text_tokens, expected.text_tokens)


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_attentions_are_probabilities_over_real_tokens(
    tokens, build_position, position_name, streams
):
    image, text = tokens()
    encoder, position = make_encoder(streams).eval(), build_position(position_name)
    fused = encoder(image, text, position, need_attentions=True)
    plain = encoder(image, text, position)
    torch.testing.assert_close(fused.text_tokens, plain.text_tokens, atol=1e-4, rtol=1e-4)
    assert plain.attentions is None and len(fused.attentions) == DEPTH
    for layer in fused.attentions:
        assert layer.text_to_image.shape == (2, 2, 6, 10)
        torch.testing.assert_close(layer.text_to_image.sum(-1), torch.ones(2, 2, 6))
        if streams == 'text':
            assert layer.image_to_text is None
        else:
            assert layer.image_to_text.shape == (2, 2, 10, 6)
            torch.testing.assert_close(layer.image_to_text.sum(-1), torch.ones(2, 2, 10))
            assert (layer.image_to_text[1, :, :, 5] == 0).all()


@pytest.mark.parametrize('streams', ['both', 'text'])
def test_bfloat16_autocast_stays_near_float32(tokens, build_position, position_name, streams):
    image, text = tokens()
    for part in (image, text):
        part.embeddings.requires_grad_()
    encoder, position = make_encoder(streams), build_position(position_name)
    expected = encoder(image, text, position).text_tokens
    with torch.autocast('cpu', torch.bfloat16):
        actual = encoder(image, text, position).text_tokens
    assert (actual.float() - expected).abs().mean() < 0.1 * expected.abs().mean()
    actual.float().sum().backward()
    assert image.embeddings.grad.isfinite().all() and text.embeddings.grad.isfinite().all()


def test_an_unknown_layout_is_an_error():
    with pytest.raises(ValueError, match="fusion.streams='image', expected 'both' or 'text'"):
        FusionEncoder(streams='image')


# texts with several images


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
@pytest.mark.parametrize('count', [1, 2, 3])
def test_several_images_are_literal_passes_through_each_layer(
    tokens, build_position, position_name, streams, count
):
    images, (_, text) = [tokens()[0] for _ in range(count)], tokens()
    encoder, position = make_encoder(streams).eval(), build_position(position_name)
    actual = encoder.fuse_images(images, text, position)

    words = [position.embed_inputs(image, text) for image in images][0][1]
    patches = [position.embed_inputs(image, text)[0] for image in images]
    relations = [position.relate(image, words) for image in patches]
    for index, layer in enumerate(encoder.layers):
        project = layer.cross_attention.project
        for k in range(count):
            image, relation = patches[k], relations[k]
            bias = position.self_bias(index, words)
            words = words._replace(
                embeddings=layer.attend_self(words.embeddings, words.attention_mask, bias)
            )
            if streams == 'both':
                bias = position.self_bias(index, image)
                image = image._replace(embeddings=layer.attend_self(image.embeddings, None, bias))
            new_words, _ = layer.attend_cross(
                words.embeddings,
                project(words.embeddings),
                project(image.embeddings),
                None,
                position.cross_terms(index, relation, 'text'),
                False,
            )
            if streams == 'both':
                new_patches, _ = layer.attend_cross(
                    image.embeddings,
                    project(image.embeddings),
                    project(words.embeddings),
                    words.attention_mask,
                    position.cross_terms(index, relation, 'image'),
                    False,
                )
                image = image._replace(embeddings=new_patches)
            words, patches[k] = words._replace(embeddings=new_words), image
    assert len(actual) == count
    for k, fused in enumerate(actual):
        torch.testing.assert_close(fused.text_tokens, words.embeddings, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(fused.image_tokens, patches[k].embeddings, atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_a_single_image_is_fused_as_by_forward(tokens, build_position, streams):
    image, text = tokens()
    encoder, position = make_encoder(streams).eval(), build_position('ace_rpe')
    (actual,) = encoder.fuse_images([image], text, position)
    expected = encoder(image, text, position)
    torch.testing.assert_close(actual.text_tokens, expected.text_tokens)
    torch.testing.assert_close(actual.image_tokens, expected.image_tokens)


@torch.no_grad()
def test_each_image_has_a_separate_relation_to_the_words(tokens, build_position):
    images, (_, text) = [tokens()[0] for _ in range(2)], tokens()
    encoder, position = make_encoder().eval(), build_position('ace_rpe')
    actual = encoder.fuse_images(images, text, position, need_image=False)
    for image, fused in zip(images, actual, strict=True):
        torch.testing.assert_close(fused.relation, position.relate(image, text))
        assert fused.image_tokens is None


@torch.no_grad()
@pytest.mark.parametrize('streams', ['both', 'text'])
def test_each_of_two_images_may_have_its_copy_of_every_layer(tokens, streams):
    images, (_, text) = [tokens()[0] for _ in range(2)], tokens()
    encoder = make_encoder(streams, share_two_images=False).eval()
    # The same as layers of depth 1, each of which sees one image.
    words, patches = text, list(images)
    for index, layer in enumerate(encoder.layers):
        single = make_encoder(streams, depth=1).eval()
        single.layers[0].load_state_dict(layer.state_dict())
        fused = single(patches[index % 2], words, NONE)
        words = words._replace(embeddings=fused.text_tokens)
        patches[index % 2] = patches[index % 2]._replace(embeddings=fused.image_tokens)
    for k, fused in enumerate(encoder.fuse_images(images, text, NONE)):
        torch.testing.assert_close(fused.text_tokens, words.embeddings, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(fused.image_tokens, patches[k].embeddings, atol=1e-4, rtol=1e-4)


def test_the_two_copies_share_only_key_and_value_of_the_cross_attention():
    encoder = make_encoder('text', share_two_images=False)
    assert len(encoder.layers) == 2 * encoder.depth == 2 * DEPTH
    for first, second in zip(encoder.layers[::2], encoder.layers[1::2], strict=True):
        second = dict(second.named_parameters())
        for name, parameter in first.named_parameters():
            is_shared = name.startswith(('cross_attention.k_proj', 'cross_attention.v_proj'))
            assert (parameter is second[name]) == is_shared, name


def test_layers_for_two_images_refuse_another_number(tokens):
    image, text = tokens()
    with pytest.raises(ValueError, match='share_two_images=False needs two images .* found 1'):
        make_encoder('text', share_two_images=False)(image, text, NONE)


@torch.no_grad()
def test_patches_enter_with_their_coordinates_but_relate_without_them(tokens, build_position):
    image, text = tokens()
    position = build_position('ace_rpe')
    encoder = make_encoder(coordinates=True).eval()
    weight, embeddings = encoder.coordinates.weight, image.embeddings.clone()
    rows, columns = image.grid_size
    for row in range(rows):
        for column in range(columns):
            y, x = (row + 0.5) / rows * 2 - 1, (column + 0.5) / columns * 2 - 1
            embeddings[:, 1 + row * columns + column] += y * weight[:, 0] + x * weight[:, 1]
    actual = encoder(image, text, position)
    encoder.coordinates = None
    relation = position.relate(image, text)
    position.relate = lambda image, text: relation
    expected = encoder(image._replace(embeddings=embeddings), text, position)
    torch.testing.assert_close(actual.text_tokens, expected.text_tokens)
    torch.testing.assert_close(actual.image_tokens, expected.image_tokens)


class Wrong(NoPosition):
    """A plug-in that returns something else than the fusion encoder expects."""

    def __init__(self, inputs=None, bias=None, relation=None, terms=NO_TERMS):
        super().__init__(2, WIDTH, 2)
        self.inputs, self.bias, self.relation, self.terms = inputs, bias, relation, terms

    def embed_inputs(self, image, text):
        return self.inputs(image, text) if self.inputs else (image, text)

    def relate(self, image, text):
        return self.relation

    def self_bias(self, layer, tokens):
        return self.bias

    def cross_terms(self, layer, relation, queries):
        return self.terms


def factors(*shape, width=WIDTH):
    return LowRank(torch.zeros(*shape, 3), torch.zeros(3, width))


@pytest.mark.parametrize(
    ('wrong', 'message'),
    [
        (
            dict(inputs=lambda i, t: i.embeddings),
            'embed_inputs returned Tensor, expected Tokens',
        ),
        (
            dict(inputs=lambda i, t: (i.with_embeddings(i.embeddings[..., :4]), t)),
            r'Wrong.embed_inputs returned tokens of the image of shape \(2, 10, 4\), exp',
        ),
        (
            dict(bias=torch.zeros(2, 2, 3, 3)),
            r'Wrong.self_bias has the shape \(2, 2, 3, 3\), expected \(2 or 1, 2 or 1, 10, 10\)',
        ),
        (dict(relation=torch.zeros(2)), 'Wrong.relate returned Tensor, expected a Relation'),
        (dict(terms=None), r"Wrong.cross_terms\('text'\) returned NoneType, expected CrossTerms"),
        (
            dict(terms=CrossTerms(query=torch.zeros(2, 6, WIDTH))),
            r"Wrong.cross_terms\('text'\).query is Tensor, expected LowRank",
        ),
        (
            dict(terms=CrossTerms(key=factors(2, 6))),  # of the queries
            r'.key has features \(2, 6, 3\) and weight \(3, 32\), expected \(2, 10, C\) and',
        ),
        (
            dict(terms=CrossTerms(value=factors(2, 10, width=16))),
            r'.value has features \(2, 10, 3\) and weight \(3, 16\), expected .* and \(C, 32\)',
        ),
        (
            dict(terms=CrossTerms(pairs=factors(2, 10, 6))),  # the image first
            r'.pairs has features \(2, 10, 6, 3\) and weight .*, expected \(2, 6, 10, C\)',
        ),
        (
            dict(terms=CrossTerms(bias=torch.zeros(2, 1, 10, 6))),
            r'.bias has the shape \(2, 1, 10, 6\), expected \(2 or 1, 2 or 1, 6, 10\)',
        ),
        (  # as scaled_dot_product_attention takes it; it would be added as 0 and 1
            dict(terms=CrossTerms(bias=torch.zeros(2, 1, 6, 10) > 0)),
            r"Wrong.cross_terms\('text'\).bias is a mask of torch.bool, and a bias is added",
        ),
        (
            dict(bias=torch.zeros(1, 2, 10, 10) > 0),
            'Wrong.self_bias is a mask of torch.bool, .* -inf where not',
        ),
    ],
)
def test_what_a_position_of_a_plug_in_returns_is_checked(tokens, wrong, message):
    with pytest.raises(ValueError, match=message):
        make_encoder('both')(*tokens(), Wrong(**wrong))

"""Inferencer computes on image files what the test loops compute on the same images."""

import pytest
import torch
from mmengine.config import Config

from xmodal.apis import Inferencer
from xmodal.engine.launch import build_runner
from xmodal.engine.loops.grounding import GroundingLoop


@pytest.fixture
def prepare(relocated, tiny_world, tmp_path):
    """Builds a config on the tiny world: its runner with random weights, and an inferencer."""

    def make(name):
        config = relocated(f'configs/{name}.py', tiny_world)
        config.update(work_dir=str(tmp_path), experiment_name=f'infer {name}')
        if image_size := config.model.backbone.image_encoder.get('image_size'):
            assert image_size == 96
            config.model.backbone.image_encoder.update(image_size=32, patch_size=8)
        runner = build_runner(config)
        runner.model.eval()
        file = tmp_path / 'weights.pth'
        torch.save(runner.model.state_dict(), file)
        return runner, Inferencer(config, file)

    return make


@torch.no_grad()
def test_similarity_is_what_the_retrieval_loop_computes(prepare):
    runner, inferencer = prepare('acerpe/pretrain_shapes')
    loop = runner.test_loop
    loop.scorer.topk = 0
    encoded = loop.encode(runner.model)
    gallery = loop.scorer.score(runner.model, encoded)
    captions, paths = encoded.captions, encoded.image_names
    texts = [caption.upper() + '.' for caption in captions[:7]]  # as users write
    actual = inferencer.similarity(paths[2:5], texts)
    torch.testing.assert_close(actual, gallery.scores[2:5, :7], atol=1e-5, rtol=1e-4)
    alone = (
        inferencer.encode_images(paths[2:5]).embedding @ inferencer.encode_texts(texts).embedding.T
    )
    torch.testing.assert_close(alone, actual)


@torch.no_grad()
@pytest.mark.parametrize('score', ['yes', 'difference'])
def test_a_match_is_a_probability_whatever_score_the_head_ranks_by(prepare, score):
    runner, inferencer = prepare('acerpe/pretrain_shapes')
    inferencer.model.matching_head.score = score
    dataset = runner.test_dataloader.dataset
    items = [dataset.get_data_info(index, None) for index in range(2)]
    paths, captions = [item['img_path'] for item in items], [item['text'][0] for item in items]
    image, text = inferencer.encode(paths, captions)
    found = inferencer.match(paths, captions)
    for i in range(2):
        for t in range(2):
            fused = runner.model.fuse(
                image.tokens.select(torch.tensor([i])), text.tokens.select(torch.tensor([t]))
            )
            no, yes = runner.model.heads['itm'](fused.text_tokens)[0]
            assert found[i, t].item() == pytest.approx(
                (yes.exp() / (no.exp() + yes.exp())).item(), abs=1e-5
            )


@pytest.mark.parametrize(
    'name',
    [
        'acerpe/vqa_shapes',
        'acerpe/snli_ve_shapes',
        'acerpe/nlvr2_shapes',
        'lxmert/vqa_shapes',
        'lxmert/nlvr2_shapes',
    ],
)
def test_predictions_are_those_of_the_test(prepare, name):
    runner, inferencer = prepare(name)
    dataset = runner.test_dataloader.dataset
    items = [dataset.get_data_info(index, None) for index in range(5)]
    batch = runner.test_dataloader.collate_fn([dataset[index] for index in range(5)])
    expected = runner.model.test_step(batch)
    images = [item.get('img_paths', item['img_path']) for item in items]
    actual = inferencer.predict(images, [item['text'] for item in items])
    for sample, reference in zip(actual, expected, strict=True):
        assert sample.predicted == reference.predicted
        if 'top_answers' in reference:
            assert [text for text, _ in sample.top_answers] == [
                text for text, _ in reference.top_answers
            ]
        else:
            torch.testing.assert_close(sample.probabilities, reference.probabilities)


def test_questions_are_cleaned_as_in_the_test_set(prepare):
    _, inferencer = prepare('acerpe/vqa_shapes')
    assert inferencer.clean_text('What COLOUR is it?') == 'what colour is it'
    assert len(inferencer.clean_text('word ' * 60).split()) == 50


def test_heatmaps_are_those_of_the_grounding_loop(prepare):
    runner, inferencer = prepare('acerpe/grounding_shapes')
    batch = next(iter(runner.test_dataloader))
    expected = GroundingLoop.predict(runner.test_loop, runner.model, batch)[:4]
    actual = inferencer.heatmap([s.image_path for s in expected], [s.text for s in expected])
    for heat, sample in zip(actual, expected, strict=True):
        large = torch.nn.functional.interpolate(heat[None, None], sample.size, mode='bicubic')
        torch.testing.assert_close(large[0, 0], sample.heat, atol=1e-6, rtol=1e-4)


def test_unsupported_calls_are_errors(prepare, tiny_world):
    _, inferencer = prepare('acerpe/pretrain_shapes')
    with pytest.raises(ValueError, match="mode='predict', expected one of"):
        inferencer.predict(sorted(tiny_world.glob('images/test/*/*.png'))[:1], ['one'])
    with pytest.raises(ValueError, match='2 images and 1 texts, expected one text for each image'):
        inferencer.predict(['a.png', 'b.png'], ['one'])
    config = Config.fromfile('configs/temde/saf_temde_shapes.py')
    with pytest.raises(ValueError, match='reads precomputed features, not image files'):
        Inferencer(config, 'any.pth')

"""The configs of docs/fine_tuning.md."""

import re
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from xmodal.apis import get_model
from xmodal.datasets.shapes import WorldSpec, build_world
from xmodal.engine.components import check_components
from xmodal.engine.keys import check_keys
from xmodal.registry import HOOKS, MODELS

FENCES = re.findall(r'```python\n(.*?)```', Path('docs/fine_tuning.md').read_text(), re.DOTALL)
*EXAMPLES, LOOP = FENCES  # configs, and a script


def test_there_is_one_of_each_key():
    keys = ('TransformersTextEncoder', 'frozen=', 'layer_decay=', 'custom_keys=', 'lora=')
    keys += ('WeightEMAHook',)
    assert [next(key for key in keys if key in text) for text in EXAMPLES] == list(keys)


@pytest.mark.parametrize('text', EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_is_a_config_with_keys_that_are_read(text, tmp_path, tiny_world):
    if 'lora=' in text:
        pytest.importorskip('peft', reason="LoRA needs the extra: pip install -e '.[lora]'")
    file = tmp_path / 'mine.py'
    file.write_text(text.replace("'configs/", f"'{Path.cwd()}/configs/"))
    config = Config.fromfile(file)
    check_keys(config)
    check_components(config)
    if 'TransformersTextEncoder' in text:  # names on a hub
        parts = config.model.image_encoder, config.model.text_encoder
        assert all(MODELS.get(part.type) for part in parts)
        (views,) = [
            step for step in config.train_dataloader.dataset.pipeline if 'transforms' in step
        ]
        assert parts[0].image_size == views.transforms[0].size
        return
    config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
    encoder = MODELS.build(config.model).backbone
    for hook in config.get('custom_hooks', []):
        HOOKS.build(hook)
    if 'frozen=' in text:
        assert not any(x.requires_grad for x in encoder.image_encoder.parameters())
    if 'lora=' in text:
        assert any('lora_A' in name for name in encoder.text_encoder.state_dict())


def test_the_loop_trains_the_model_and_writes_it(tmp_path):
    world = tmp_path / 'world'
    build_world(world, WorldSpec(train=16, val=1, test=1, seed=1), workers=1)
    text = LOOP.replace('data/shapes', str(world)).replace('models/', f'{tmp_path}/')
    names = {}
    exec(text, names)
    before, after = (get_model(name) for name in ('acerpe-shapes', tmp_path / 'mine'))
    texts = after.data_preprocessor.tokenize(['a red disc'])
    moved = after.encode_text(*texts).embedding
    assert torch.equal(moved, names['model'].encode_text(*texts).embedding)
    assert not torch.equal(moved, before.encode_text(*texts).embedding)
    dataset = names['dataset']
    epochs = [[dataset[i, epoch]['data_samples'].text for i in range(9)] for epoch in range(2)]
    assert epochs[0] != epochs[1]

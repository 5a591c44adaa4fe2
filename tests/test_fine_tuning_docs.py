"""The configs of docs/fine_tuning.md."""

import re
from pathlib import Path

import pytest
from mmengine.config import Config

from xmodal.engine.components import check_components
from xmodal.engine.keys import check_keys
from xmodal.registry import HOOKS, MODELS

EXAMPLES = re.findall(r'```python\n(.*?)```', Path('docs/fine_tuning.md').read_text(), re.DOTALL)


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

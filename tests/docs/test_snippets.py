"""The Python of the pages: configs are read, backends of logs exist, equations have functions."""

import re
from pathlib import Path

import pytest
from shell_commands import PAGES, fences

from xmodal.arguments import unknown_key
from xmodal.engine.launch import read_config
from xmodal.models.backbones import TransformersTextEncoder
from xmodal.registry import VISBACKENDS

CONFIGS = {
    f'{page}: {text.splitlines()[0]}': text
    for page in PAGES
    for text in fences(page, 'python')
    if re.match(r'# configs/\w+\.py\n', text)
}
MODELS = {
    'mine': 'ImageTextMatcher',
    'mine_vectors': 'AlbefPretrainer',
    'mine_fusion': 'AlbefPretrainer',
}
EQUATION = re.compile(r'\[`(\w+)`\]\((\S*xmodal/\S+\.py)\)')


@pytest.mark.parametrize('name', CONFIGS)
def test_a_config_in_a_page_can_be_read(name, tmp_path):
    for folder in Path('configs').resolve().iterdir():  # the config is beside them
        (tmp_path / folder.name).symlink_to(folder)
    (tmp_path / 'mine.py').write_text(CONFIGS[name])
    config = read_config(tmp_path / 'mine.py')
    assert config.train_dataloader.dataset.data_root == 'data/mine/'
    assert config.test_dataloader.dataset.ann_file == 'dev.json'
    assert config.model.type == MODELS[re.search(r'configs/(\w+)', name)[1]]


def test_a_text_encoder_of_another_language_is_added_to_a_config_in_a_page(tmp_path):
    page = Path('docs/tutorials/own_images.md')
    config, encoder = fences(page, 'python')[:2]
    (tmp_path / 'mine.py').write_text(config + encoder)
    model = read_config(tmp_path / 'mine.py').model
    assert model.text_encoder.pretrained == model.data_preprocessor.tokenizer.pretrained
    assert unknown_key(TransformersTextEncoder, {*model.text_encoder} - {'type', 'frozen'}) is None


def test_the_backends_of_logs_are_mmengines():
    found = {}
    for text in fences(Path('docs/training.md'), 'python'):
        names = {}
        exec(text, names)
        for backend in names.get('visualizer', {}).get('vis_backends', ()):
            keys = {key for key in backend if key != 'type'}
            found[backend['type']] = unknown_key(VISBACKENDS.get(backend['type']), keys)
    assert found == dict.fromkeys(
        ['LocalVisBackend', 'TensorboardVisBackend', 'WandbVisBackend', 'MLflowVisBackend']
    )


@pytest.mark.parametrize('page', sorted(Path('configs').glob('*/README.md')), ids=str)
def test_the_code_of_an_equation_is_in_the_module_it_links_to(page):
    links = EQUATION.findall(page.read_text())
    assert links
    for name, file in links:
        assert re.search(rf'^(class|def) {name}\b', (page.parent / file).read_text(), re.M), name

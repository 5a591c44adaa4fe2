"""What all tests share."""
# ruff: noqa: E402 (the search for garbage stops before the imports)

import copy
import gc
import json
import os
import re
import shutil
import sys

# Before torch or transformers are imported: no hub, and no threads that fight over few cores.
os.environ.setdefault('HF_HUB_OFFLINE', '1')
os.environ.setdefault('OMP_NUM_THREADS', '1')
# What is imported is left out of the search for garbage, which takes most time on it.
gc.disable()

from collections.abc import Callable, Iterator
from multiprocessing import set_forkserver_preload
from pathlib import Path

import pytest
import timm
import torch
from mmengine.config import Config
from mmengine.utils.dl_utils import collect_env
from mmengine.visualization import Visualizer
from robustness.families import FAMILIES

from xmodal.datasets.seeding import seed_torch
from xmodal.datasets.shapes import WorldSpec, build_world
from xmodal.engine.launch import build_runner
from xmodal.registry import register_all

pytest_plugins = ['robustness.table']

WIDTH = 32


def pytest_unconfigure() -> None:
    """Leaves the end of this process without a search for garbage."""
    gc.freeze()


@pytest.fixture(scope='session', autouse=True)
def _registered_components() -> None:
    torch.set_num_threads(1)
    register_all()
    gc.freeze()
    gc.enable()
    # Processes that tests start from the fork server begin at once.
    set_forkserver_preload([name for name in sys.modules if name.startswith('xmodal.')])


@pytest.fixture(scope='session', autouse=True)
def _plain_configs() -> Iterator[None]:
    """Saves the configs of runs without layout, which takes longer than a tiny run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('mmengine.config.config.FormatCode', lambda code, **_: (code, True))
        yield


@pytest.fixture(scope='session', autouse=True)
def _cheap_runners() -> Iterator[None]:
    """Does once what MMEngine does for every runner, and what no test depends on.

    It makes a canvas for images, on which no run draws, and asks the C compiler for its version.
    """
    canvas, environment = Visualizer._initialize_fig(None, {}), collect_env()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Visualizer, '_initialize_fig', lambda *_: canvas)
        patch.setattr('mmengine.runner.runner.collect_env', lambda: dict(environment))
        yield


@pytest.fixture(scope='session', autouse=True)
def own_config_reader() -> Iterator[Callable]:
    """MMEngine's reader, in whose place each config of this checkout is read once in all tests.

    MMEngine runs a config and all its bases every time.
    """
    read, folder = Config._file2dict, Path('configs').resolve()
    contents = {}

    def read_once(filename: str, *args, **options) -> tuple:
        if not Path(filename).resolve().is_relative_to(folder):  # a test may change it
            return read(filename, *args, **options)
        key = (os.path.abspath(filename), *args, *sorted(options.items()))
        if key not in contents:
            contents[key] = read(filename, *args, **options)
        return copy.deepcopy(contents[key])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Config, '_file2dict', staticmethod(read_once))
        yield read


@pytest.fixture(scope='session', autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Leaves files to the system, which writes them later: no test cuts the power."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr('os.fsync', lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Lets every test draw the same numbers in any order: one that fails fails again."""
    seed_torch(0)


@pytest.fixture(scope='session')
def tiny_world(tmp_path_factory) -> Path:
    """The embedded world with 32 training scenes."""
    folder = tmp_path_factory.mktemp('shapes') / 'world'
    build_world(folder, WorldSpec(train=32, val=6, test=10, size=32, seed=1), workers=1)
    return folder


@pytest.fixture(scope='session')
def relocated() -> Callable[[str | Path, Path], Config]:
    """Reads a config with the embedded world in another folder, read without worker processes."""

    def read(file: str | Path, world: Path) -> Config:
        content = json.dumps(Config.fromfile(file).to_dict()).replace('data/shapes', str(world))
        # At any depth: a zero-shot test has a loader of its own.
        content = re.sub(r'"num_workers": \d+', '"num_workers": 0', content)
        content = content.replace('"persistent_workers": true', '"persistent_workers": false')
        config = Config(json.loads(content), filename=str(file))
        config.load_from = None
        return config

    return read


@pytest.fixture
def shrink(tiny_world, tmp_path) -> Callable[[str], Config]:
    """Loads a config of the embedded world with a model of 32 dimensions and the tiny world."""

    def load(file: str) -> Config:
        config = Config.fromfile(file)
        backbone = config.model.backbone
        backbone.image_encoder.update(
            image_size=32, patch_size=8, embed_dim=WIDTH, num_heads=2, depth=1, pretrained=False
        )
        backbone.text_encoder.config.update(
            hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, intermediate_size=WIDTH
        )
        backbone.fusion.update(embed_dims=WIDTH, num_heads=2, depth=1)
        config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
            config[name].dataset.data_root = str(tiny_world)
            config[name].update(num_workers=0, persistent_workers=False)
        config.train_dataloader.global_batch_size = 8
        config.load_from = None
        config.work_dir = str(tmp_path / 'run')
        config.experiment_name = tmp_path.name  # runs of one name and second share their logs
        return config

    return load


@pytest.fixture
def tiny_config(shrink) -> Config:
    """The embedded pre-training, tiny: 4 iterations an epoch."""
    config = shrink('configs/acerpe/pretrain_shapes.py')
    config.model.heads.mim.update(block=8, source='fusion')
    config.model.update(queue_length=20, momentum=0.9)
    config.train_cfg.update(max_epochs=2, val_interval=100)
    config.param_scheduler[1].end = 9  # the same rates in a run of one epoch and of two
    config.custom_hooks = [dict(type='MomentumDistillationHook', alpha=0.4)]
    config.default_hooks.checkpoint.max_keep_ckpts = -1
    return config


@pytest.fixture(scope='session')
def first_epoch(tmp_path_factory) -> Path:
    """The work dir of a run of one epoch, which the first test that needs it trains."""
    return tmp_path_factory.mktemp('first_epoch') / 'run'


@pytest.fixture
def trained(tiny_config, first_epoch) -> Path:
    """The checkpoint of the run of one epoch, in a copy of its work dir: a test may spoil it."""
    if not (first_epoch / 'epoch_1.pth').exists():
        config = copy.deepcopy(tiny_config)
        config.train_cfg.max_epochs = 1
        config.work_dir, config.experiment_name = str(first_epoch), 'first_epoch'
        build_runner(config).train()
    checkpoint = Path(shutil.copytree(first_epoch, tiny_config.work_dir), 'epoch_1.pth')
    checkpoint.with_name('last_checkpoint').write_text(str(checkpoint))
    return checkpoint


@pytest.fixture
def grid_config(tiny_world, tmp_path) -> Callable[[str], Config]:
    """Loads a config of photographs' grid features with small random encoders, and drawn scenes."""

    def load(file: str) -> Config:
        config = Config.fromfile(file)
        weights = tmp_path / 'convnext.pth'
        torch.save(timm.create_model('test_convnext').state_dict(), weights)
        config.model.data_preprocessor.tokenizer.pretrained = str(tiny_world / 'vocab.txt')
        encoders = config.model.get('backbone', config.model)
        encoders.image_encoder.feature_dims = 64
        sizes = dict(num_hidden_layers=1, num_attention_heads=2, intermediate_size=WIDTH)
        encoders.text_encoder.update(
            pretrained=None, config=dict(sizes, vocab_size=128, hidden_size=WIDTH)
        )
        for name, split in (('train_dataloader', 'train'), ('test_dataloader', 'test')):
            loader = config[name]
            loader.update(num_workers=0, persistent_workers=False)
            loader.dataset.update(data_root=str(tiny_world), ann_file=f'albef/{split}.json')
            loader.dataset.pipeline[0] = dict(
                type='LoadRegions',
                store=[],
                extractor=dict(
                    type='GridExtractor',
                    arch='test_convnext',
                    image_size=96,
                    pretrained=str(weights),
                ),
            )
        config.train_dataloader.global_batch_size = 8
        config.train_cfg.max_epochs = 1
        config.load_from = None
        config.work_dir = str(tmp_path / 'run')
        config.experiment_name = tmp_path.name
        return config

    return load


@pytest.fixture
def family_config(tiny_config, relocated, tiny_world):
    """The config of a family with a tiny model, on the tiny world."""

    def load(family):
        if family == 'acerpe':
            return tiny_config
        file, changes = FAMILIES[family]
        config = relocated(file, tiny_world)
        config.merge_from_dict(changes)
        return config

    return load

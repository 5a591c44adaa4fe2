"""What holds between the configs of different experiments, and between them and the documents."""

import re
from pathlib import Path

import pytest
from mmengine.config import Config

FILES = sorted(Path('configs').glob('[!_]*/*.py'))
CHECKPOINT = re.compile(r'(work_dirs/\w+)/epoch_(\d+)\.pth')
FROM_CHECKPOINT = [file for file in FILES if re.search("load_from = 'work_dirs", file.read_text())]
DOCUMENTS = [Path('README.md'), *sorted(Path('docs').rglob('*.md'))]
# A run in another folder than its config's, as a comment tells to start it.
ELSEWHERE = re.compile(r'tools/train\.py (\S+)[\s\\#]+--work-dir (work_dirs/\w+)')


@pytest.fixture(scope='module')
def last_epochs():
    """The last epoch of each run, by its folder."""
    epochs = {}
    for file in FILES:
        config = Config.fromfile(file)
        folder = config.get('work_dir') or f'work_dirs/{file.stem}'
        epochs[folder] = config.get('train_cfg', {}).get('max_epochs')
    for file in FILES:
        for other, folder in ELSEWHERE.findall(file.read_text()):
            epochs[folder] = Config.fromfile(other).train_cfg.max_epochs
    return epochs


@pytest.mark.parametrize('file', FROM_CHECKPOINT, ids=str)
def test_a_run_starts_from_the_last_epoch_of_another(file, last_epochs):
    loaded = Config.fromfile(file).load_from
    if found := CHECKPOINT.fullmatch(loaded):
        assert last_epochs[found[1]] == int(found[2])
    else:
        assert loaded == 'work_dirs/albef/retrieval_coco.pth'  # converted, not trained here


@pytest.mark.parametrize('file', FILES, ids=str)
def test_the_last_schedule_of_a_run_ends_with_the_run(file):
    # An `end` read from max_epochs in the file would not follow --cfg-options.
    schedules = Config.fromfile(file).get('param_scheduler', [])
    assert all('end' not in schedule for schedule in schedules[-1:])


@pytest.mark.parametrize('file', DOCUMENTS, ids=str)
def test_checkpoints_in_documents_are_of_the_last_epoch(file, last_epochs):
    for folder, epoch in CHECKPOINT.findall(file.read_text()):
        assert last_epochs[folder] == int(epoch), folder

"""What holds between the configs of different experiments, and between them and the documents."""

import re
from pathlib import Path

import pytest
import yaml
from mmengine.config import Config

from xmodal.zoo import find_entry

FILES = sorted(Path('configs').glob('[!_]*/*.py'))
CHECKPOINT = re.compile(r'(work_dirs/\w+)/epoch_(\d+)\.pth')
FROM_CHECKPOINT = [file for file in FILES if re.search("load_from = 'work_dirs", file.read_text())]
DOCUMENTS = [
    Path('README.md'),
    *sorted(Path('docs').rglob('*.md')),
    *sorted(Path('configs').rglob('*.md')),
]
FAMILIES = sorted({file.parent for file in FILES})
BASES = sorted(Path('configs/_base_').rglob('*.py'))
# A config of the reader's own, in a page.
OWN = re.compile(r"# configs/(\w+)\.py\n_base_ = 'xmodal::(\S+)'\n")
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


def test_no_two_configs_train_in_one_folder():
    files = [*FILES, *sorted(Path('projects').glob('*/*.py'))]
    configs = [Config.fromfile(file) for file in files if '_base_ =' in file.read_text()]
    trained = [config for config in configs if config.get('train_cfg')]
    folders = [c.get('work_dir') or f'work_dirs/{Path(c.filename).stem}' for c in trained]
    assert len(folders) > 100 and len(folders) == len(set(folders)), sorted(folders)


@pytest.mark.parametrize('file', FROM_CHECKPOINT, ids=str)
def test_a_run_starts_from_the_last_epoch_of_another(file, last_epochs):
    loaded = Config.fromfile(file).load_from
    if checkpoint := CHECKPOINT.fullmatch(loaded):
        assert last_epochs[checkpoint[1]] == int(checkpoint[2])
    else:
        name = file.stem.removesuffix('_from_albef').removesuffix('_albef')
        assert loaded == f'work_dirs/albef/{name}.pth'  # converted, not trained here


@pytest.mark.parametrize('file', FILES, ids=str)
def test_the_last_schedule_of_a_run_ends_with_the_run(file):
    # An `end` read from max_epochs in the file would not follow --cfg-options.
    schedules = Config.fromfile(file).get('param_scheduler', [])
    assert all('end' not in schedule for schedule in schedules[-1:])


@pytest.mark.parametrize('file', DOCUMENTS, ids=str)
def test_checkpoints_in_documents_are_of_the_last_epoch(file, last_epochs):
    text = file.read_text()
    own = {f'work_dirs/{name}': f'work_dirs/{Path(base).stem}' for name, base in OWN.findall(text)}
    for folder, epoch in CHECKPOINT.findall(text):
        assert last_epochs[own.get(folder, folder)] == int(epoch), folder


@pytest.mark.parametrize('file', BASES, ids=str)
def test_a_base_inherits_at_most_from_one_that_inherits_from_none(file):
    for parent in Config._get_base_files(str(file)):
        assert not Config._get_base_files(str(file.parent / parent)), parent


@pytest.fixture(params=FAMILIES, ids=lambda folder: folder.name)
def family(request):
    """A folder of configs, its metafile and its README."""
    folder = request.param
    return (
        folder,
        yaml.safe_load((folder / 'metafile.yml').read_text()),
        (folder / 'README.md').read_text(),
    )


def test_a_metafile_lists_each_config_of_its_folder_once(family):
    folder, metafile, _ = family
    (collection,) = metafile['Collections']
    assert collection['README'] == str(folder / 'README.md') and collection['Paper']['Title']
    listed = [model['Config'] for model in metafile['Models']]
    assert sorted(listed) == sorted(str(file) for file in folder.glob('*.py'))
    for model in metafile['Models']:
        assert model['Name'] == f'{folder.name}_{Path(model["Config"]).stem}'
        assert model['In Collection'] == collection['Name']


def test_measured_results_name_their_command_and_quoted_ones_their_source(family):
    measured_keys = {'Task', 'Dataset', 'Metrics', 'Seeds', 'Command'}
    for model in family[1]['Models']:
        for result in model.get('Results', []):
            assert result.keys() - {'Standard Deviation'} == measured_keys
            assert ('Standard Deviation' in result) == (result['Seeds'] > 1)
            assert result.get('Standard Deviation', result['Metrics']).keys() == (
                result['Metrics'].keys()
            )
            _, tool, target, *_ = result['Command'].split()
            if tool == 'tools/ablate.py':
                paper, table = target.split('/')
                target = f'configs/{paper}/ablations/{table}.py'
            assert Path(tool).is_file(), result['Command']
            assert Path(target).is_file() or find_entry(target), result['Command']
        for result in model.get('Quoted', []):
            assert result.keys() == {'Task', 'Dataset', 'Metrics', 'Source'}


def test_a_readme_shows_what_the_metafile_says_measured_and_quoted_apart(family):
    _, metafile, readme = family
    models, _, results = readme.partition('## Results')
    measured, _, quoted = results.partition('### Quoted')
    assert '### Measured' in measured
    for model in metafile['Models']:
        stem = Path(model['Config']).stem
        link = f'| [`{stem}.py`]({stem}.py) |'
        assert models.count(link) == 1, stem
        for section, key in ((measured, 'Results'), (quoted, 'Quoted')):
            lines = [line for line in section.splitlines() if line.startswith(link)]
            expected = [row(link, result) for result in model.get(key, [])]
            assert [line.rsplit('|', 2)[0] + '|' for line in lines] == expected
    for command in (r['Command'] for m in metafile['Models'] for r in m.get('Results', [])):
        assert command in measured


def row(link, result):
    """The line of a README's table, without its last cell."""
    deviations = result.get('Standard Deviation', {})
    metrics = ', '.join(
        f'{name} {value}' + (f' ± {deviations[name]}' if deviations else '')
        for name, value in result['Metrics'].items()
    )
    return f'{link} {result["Dataset"]} | {metrics} |'

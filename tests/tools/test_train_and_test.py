"""The command lines: errors in one sentence, and several processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from ranks import run_on_ranks

from tools import test as test_tool
from tools import train
from xmodal.engine.beginning import set_beginning
from xmodal.engine.errors import ConfigError, run_or_explain
from xmodal.engine.launch import build_runner
from xmodal.engine.lock import work_dir_lock
from xmodal.registry import MODELS


@pytest.fixture
def config_file(tiny_config, tmp_path):
    path = tmp_path / 'tiny.py'
    tiny_config.pop('work_dir')
    tiny_config.dump(path)
    return str(path)


def call(capsys, monkeypatch, tool, *arguments):
    """Calls a tool as the command line does: its exit status and what it printed."""
    monkeypatch.setattr(sys, 'argv', [tool, *map(str, arguments)])
    module = __import__(f'tools.{tool}', fromlist=['main'])
    with pytest.raises(SystemExit) as status:
        run_or_explain(module.main)
    return status.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    'option, message',
    [
        ('model.heads.itm.hardnes=1', r"ITMHead takes no key 'hardnes', did you mean 'hardness'?"),
        ('model.backbone.fusion.type=FusionEncodr', "did you mean 'FusionEncoder'?"),
        ('model.backbone.fusion.streams=one', "fusion.streams='one', expected 'both' or 'text'"),
        ('model.backbone.text_encoder.config.hidden_siz=4', r"config has ['hidden_siz'], which"),
        (
            'model.data_preprocessor.tokenizer.vocab_file=a.txt',
            "data_preprocessor.tokenizer: build_tokenizer takes no key 'vocab_file'; it takes pre",
        ),
        (
            'model.data_preprocessor.tokenizer.pretrained=3',
            'data_preprocessor.tokenizer.pretrained=3, expected a string',
        ),
        ('train_dataloader.dataset.ann_file=none.json', 'none.json does not exist'),
        ('optim_wrapper.dtype=float8', "optim_wrapper.dtype='float8', expected 'bfloat16'"),
        (
            'optim_wraper.dtype=bfloat16',
            "unknown key 'optim_wraper', did you mean 'optim_wrapper'?",
        ),
        ('max_epochs=3', "unknown key 'max_epochs', did you mean 'train_cfg.max_epochs'?"),
        ('lr=3', "unknown key 'lr', did you mean 'optim_wrapper.optimizer.lr'?"),
        ('zzz=3', "unknown key 'zzz'; the config has "),
        ('default_hooks.chekpoint.interval=2', "did you mean 'default_hooks.checkpoint'?"),
        (
            'default_hooks.mine.interval=2',
            "default_hooks.mine={'interval': 2}, expected a dict with 'type' or None",
        ),
        ('randomness.sed=2', "randomness takes no key 'sed', did you mean 'seed'?"),
        (
            'train_dataloader.collate_fn.type=xmodal.stack_image',
            "type='xmodal.stack_image' is not a registered function, did you mean 'stack_images'?",
        ),
        (
            'train_dataloader.dataset.ann_fil=a.json',
            "AlbefJsonDataset takes no key 'ann_fil', did you mean 'ann_file'?\n",
        ),
        (
            'train_cfg.max_epoch=3',
            "ResumableEpochTrainLoop takes no key 'max_epoch', did you mean 'max_epochs'?\n",
        ),
        (
            'optim_wrapper.optimizer.zzz=3',
            "AdamW takes no key 'zzz'; it takes params, lr, betas, eps, weight_decay",
        ),
        ('runner_type=Runer', "type='Runer' is not a registered runner, did you mean 'Runner'?"),
    ],
)
def test_a_mistake_in_a_config_ends_at_build_time_with_a_sentence(
    config_file, tmp_path, capsys, monkeypatch, option, message
):
    arguments = config_file, '--work-dir', tmp_path / 'run', '--cfg-options', option
    status, printed = call(capsys, monkeypatch, 'train', *arguments)
    sentence = printed[printed.index('error: ') :]
    assert status == 2
    assert message in sentence
    assert 'Traceback' not in sentence and len(sentence.splitlines()) <= 3


def test_a_missing_config_and_checkpoint_are_named(config_file, tmp_path, capsys, monkeypatch):
    status, printed = call(capsys, monkeypatch, 'train', 'configs/none.py')
    assert status == 2 and 'config configs/none.py does not exist' in printed
    status, printed = call(capsys, monkeypatch, 'test', config_file, 'none.pth')
    assert status == 2 and 'checkpoint none.pth does not exist' in printed
    run = config_file, '--work-dir', tmp_path / 'run'
    for source in (['--resume', 'none.pth'], ['--cfg-options', 'load_from=none.pth']):
        status, printed = call(capsys, monkeypatch, 'train', *run, *source)
        assert status == 2 and 'error: checkpoint none.pth does not exist' in printed
    status, printed = call(capsys, monkeypatch, 'train', *run, '--resume', tmp_path)
    assert status == 2 and f'checkpoint {tmp_path} is a folder: give a file in it' in printed


def test_amp_without_an_optimizer_is_the_sentence_about_the_optimizer(
    config_file, tmp_path, capsys, monkeypatch
):
    arguments = config_file, '--work-dir', tmp_path / 'run', '--amp'
    none = '--cfg-options', 'optim_wrapper=None'
    status, printed = call(capsys, monkeypatch, 'train', *arguments, *none)
    assert status == 2 and 'train_cfg without optim_wrapper: give all three or none' in printed


@pytest.mark.parametrize('option', ['--resume', '--cfg-options=load_from'])
def test_a_checkpoint_that_is_a_web_page_is_called_one(
    config_file, tmp_path, capsys, monkeypatch, option
):
    # A logger that an earlier test left in this process would print that its stream is closed.
    monkeypatch.setattr('logging.raiseExceptions', False)
    page = tmp_path / 'page.pth'
    page.write_text('<!DOCTYPE html>')
    source = [f'{option}={page}']
    arguments = config_file, '--work-dir', tmp_path / 'run', *source
    status, printed = call(capsys, monkeypatch, 'train', *arguments)
    assert status == 2 and f'error: {page} (15 bytes) is no checkpoint' in printed
    assert 'a web page' in printed and 'Traceback' not in printed


def test_before_it_trains_ctrl_c_ends_the_process(config_file, tmp_path, monkeypatch):
    def look(config):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        raise ConfigError('seen')

    monkeypatch.setattr('xmodal.engine.launch.build_runner', look)
    monkeypatch.setattr(sys, 'argv', ['train', config_file, '--work-dir', str(tmp_path / 'run')])
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ConfigError, match='seen'):
        train.main()
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_second_training_in_a_folder_changes_nothing_in_it(
    config_file, tmp_path, capsys, monkeypatch
):
    run = tmp_path / 'run'
    with work_dir_lock(run):
        for resume in ([], ['--resume']):
            arguments = config_file, '--work-dir', run, *resume
            status, printed = call(capsys, monkeypatch, 'train', *arguments)
            assert status == 2
            assert f'another training runs in it (process {os.getpid()} on ' in printed
        assert [path.name for path in run.iterdir()] == ['train.lock']


def test_a_run_is_not_trained_over(config_file, tmp_path, capsys, monkeypatch):
    (tmp_path / 'run').mkdir()
    (tmp_path / 'run/epoch_1.pth').write_bytes(b'mine')
    arguments = config_file, '--work-dir', tmp_path / 'run'
    status, printed = call(capsys, monkeypatch, 'train', *arguments)
    assert status == 2 and 'holds an earlier run (epoch_1.pth): add --resume' in printed
    assert (tmp_path / 'run/epoch_1.pth').read_bytes() == b'mine'


@pytest.mark.parametrize('folder', ['', '.', 'link'])
def test_a_run_does_not_replace_the_config_that_it_reads(
    config_file, tmp_path, capsys, monkeypatch, folder
):
    (tmp_path / 'link').symlink_to(tmp_path)
    source, arguments = Path(config_file), ('--work-dir', tmp_path / folder)
    source.write_text(f'# notes of a week\n{source.read_text()}')
    content = source.read_text()
    for tool, more in (('train', ()), ('test', ('weights.pth',))):
        status, printed = call(capsys, monkeypatch, tool, config_file, *more, *arguments)
        assert status == 2 and 'would replace it: give another one, as --work-dir' in printed
    assert source.read_text() == content


def test_a_test_in_the_folder_of_a_training_is_refused(config_file, tmp_path, capsys, monkeypatch):
    run = tmp_path / 'run'
    run.mkdir()
    (run / 'tiny.py').write_text('# of the training')
    (run / 'epoch_1.pth').write_bytes(b'')
    arguments = config_file, run / 'epoch_1.pth', '--work-dir', run
    status, printed = call(capsys, monkeypatch, 'test', *arguments)
    assert (
        status == 2 and f'a test would replace: give another one, as --work-dir {run}/' in printed
    )
    assert (run / 'tiny.py').read_text() == '# of the training'


def test_a_test_leaves_the_config_of_the_training_as_it_is(
    config_file, tiny_config, tmp_path, monkeypatch
):
    run = tmp_path / 'work_dirs/tiny'
    run.mkdir(parents=True)
    (run / 'tiny.py').write_text('# of the training')
    weights = MODELS.build(tiny_config.model).state_dict()
    torch.save({'state_dict': weights, 'meta': {}}, run / 'epoch_1.pth')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['test.py', config_file, f'{run}/epoch_1.pth'])
    test_tool.main()
    assert (run / 'tiny.py').read_text() == '# of the training'
    assert (run / 'test/tiny.py').is_file()


def test_a_run_goes_on_from_its_latest_checkpoint_wherever_its_folder_is(tiny_config, tmp_path):
    run, other = tmp_path / 'run', tmp_path / 'other'
    for folder in (run, other):
        folder.mkdir()
        for name in ('epoch_1.pth', 'iter_6.pth', 'best_epoch_9.pth'):
            torch.save({'state_dict': {}}, folder / name)
        os.utime(folder / 'epoch_1.pth', (0, 0))
    tiny_config.work_dir = str(run)

    def begin(given, **changes):
        config = Config({**tiny_config.to_dict(), **changes})
        set_beginning(config, given)
        return config.resume, config.load_from and Path(config.load_from)

    assert begin('auto') == (True, run / 'iter_6.pth')  # the newest, where none is named
    (run / 'last_checkpoint').write_text('/where/it/was/made/epoch_1.pth')
    assert begin('auto') == begin(None, resume=True) == (True, run / 'epoch_1.pth')
    assert begin(str(run / 'iter_6.pth')) == (True, run / 'iter_6.pth')
    with pytest.raises(FileNotFoundError, match='run/epoch_7.pth does not exist'):
        begin(str(run / 'epoch_7.pth'))
    with pytest.raises(ConfigError, match='holds another run .* than .*other/epoch_1.pth'):
        begin(str(other / 'epoch_1.pth'))
    new = dict(work_dir=str(tmp_path / 'new'), load_from='pretrained.pth')
    assert begin('auto', **new) == (False, Path('pretrained.pth'))
    assert begin(str(other / 'epoch_1.pth'), **new) == (True, other / 'epoch_1.pth')


def run_script(script, *arguments, check=True, folder=None):
    environment = os.environ | {
        'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
        'OMP_NUM_THREADS': '1',
    }
    command = [str(Path(script).resolve()), *map(str, arguments)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=folder)
    assert not (check and ended.returncode), ended.stderr[-5000:]
    return ended


@pytest.fixture(scope='module')
def parallel_folder(tmp_path_factory):
    return tmp_path_factory.mktemp('parallel') / 'run'


@pytest.fixture
def parallel(parallel_folder, config_file, tmp_path):
    """The weights that two processes train: the first test that asks for them has them trained."""
    checkpoint = parallel_folder / 'epoch_2.pth'
    if not checkpoint.exists():
        options = ['--work-dir', parallel_folder]
        run_on_ranks('tools/train.py', config_file, *options, folder=tmp_path)
    return checkpoint


def test_two_processes_train_and_evaluate_to_the_numbers_of_one(
    parallel, config_file, tiny_config, tmp_path
):
    rankings = f'test_cfg.save_rankings={tmp_path}/two.json'
    options = ['--work-dir', tmp_path / 'test', '--cfg-options', rankings]
    run_on_ranks('tools/test.py', config_file, parallel, *options, folder=tmp_path)

    tiny_config.work_dir = str(tmp_path / 'one')
    tiny_config.load_from = str(parallel)
    tiny_config.test_cfg.save_rankings = f'{tmp_path}/one.json'
    tiny_config.experiment_name = 'one process'
    build_runner(tiny_config).test()
    two, one = (json.loads((tmp_path / f'{n}.json').read_text()) for n in ('two', 'one'))
    assert two == one


def test_a_sharded_run_that_is_resumed_learns_as_one_in_parallel(parallel, config_file, tmp_path):
    def train(*options):
        options = ['--work-dir', tmp_path / 'sharded', *options]
        run_on_ranks('tools/train.py', config_file, *options, folder=tmp_path)

    sharded = "fsdp.units=['Block', 'BertLayer', 'FusionLayer']"
    train('--cfg-options', sharded, 'train_cfg.max_epochs=1')
    train('--resume', '--cfg-options', sharded)
    expected, actual = (
        torch.load(file, weights_only=True)['state_dict']
        for file in (parallel, tmp_path / 'sharded/epoch_2.pth')
    )
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        # A key's bias has no gradient but noise, which Adam scales up to whole steps.
        if not name.endswith('key.bias'):
            torch.testing.assert_close(actual[name], value, atol=2e-4, rtol=1e-3, msg=name)


def test_a_sharded_run_begins_with_weights_that_are_resampled(config_file, tiny_config, tmp_path):
    model = MODELS.build(tiny_config.model)
    state, name = model.state_dict(), 'backbone.image_encoder.vit.pos_embed'
    smaller = torch.full_like(state[name][:, :5], 3.0)  # [CLS] and 2 x 2 patches, for 4 x 4
    torch.save({'state_dict': state | {name: smaller}}, tmp_path / 'smaller.pth')
    options = [
        "fsdp.units=['Block', 'BertLayer', 'FusionLayer']",
        f'load_from={tmp_path}/smaller.pth',
        'train_cfg.max_epochs=1',
        'optim_wrapper.optimizer.lr=0',
    ]
    arguments = [config_file, '--work-dir', tmp_path / 'run', '--cfg-options', *options]
    run_on_ranks('tools/train.py', *arguments, folder=tmp_path)
    actual = torch.load(tmp_path / 'run/epoch_1.pth', weights_only=True)['state_dict'][name]
    torch.testing.assert_close(actual, torch.full_like(state[name], 3.0))


def test_a_batch_that_does_not_divide_is_an_error(config_file, tmp_path):
    options = ['--cfg-options', 'train_dataloader.global_batch_size=7']
    arguments = [config_file, '--work-dir', tmp_path / 'run', *options]
    with pytest.raises(AssertionError, match=r'size=7 is not a multiple of 2 process\(es\)'):
        run_on_ranks('tools/train.py', *arguments, folder=tmp_path)


@pytest.mark.parametrize(
    'script, given',
    [
        ('dist_train', ['config.py']),
        ('dist_test', ['config.py', 'start.pth']),
        ('dist_test', ['config.py']),  # of a model that has its weights
    ],
)
def test_a_script_ends_as_its_launcher_does_in_any_folder(script, given, tmp_path, monkeypatch):
    python = tmp_path / 'python'
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexit 3\n')
    python.chmod(0o755)
    monkeypatch.setenv('PYTHON', str(python))
    arguments = [*given, 2, '--work-dir', 'a b']
    ended = run_script(f'tools/{script}.sh', *arguments, check=False, folder=tmp_path)
    assert ended.returncode == 3
    words = ended.stdout.splitlines()
    first = words.index('config.py')
    assert words[first - 2] == '--nproc_per_node=2'
    assert Path(tmp_path, words[first - 1]).samefile(f'tools/{script[5:]}.py')
    assert words[first:] == [*given, '--launcher', 'pytorch', '--work-dir', 'a b']


@pytest.mark.parametrize('given', [['config.py'], ['config.py', 'start.pth']])
def test_a_job_of_slurm_gets_all_arguments(given, tmp_path, monkeypatch):
    srun = tmp_path / 'srun'
    srun.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    srun.chmod(0o755)
    monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
    arguments = ['partition', 'job', *given, '--work-dir', 'a b']
    words = run_script('tools/slurm_test.sh', *arguments).stdout.splitlines()
    first = words.index('config.py')
    assert words[first - 1].endswith('tools/test.py')
    assert words[first:] == [*given, '--work-dir', 'a b', '--launcher', 'slurm']


def test_several_machines_must_say_which_they_are(config_file, monkeypatch):
    monkeypatch.setenv('NNODES', '2')
    result = run_script('tools/dist_train.sh', config_file, 8, check=False)
    assert result.returncode != 0 and 'NODE_RANK: is the number of this machine' in result.stderr
    monkeypatch.setenv('NODE_RANK', '1')
    result = run_script('tools/dist_train.sh', config_file, 8, check=False)
    assert result.returncode != 0 and 'MASTER_ADDR: is the address of machine 0' in result.stderr


@pytest.mark.parametrize('script', ['dist_train', 'dist_test', 'slurm_train', 'slurm_test'])
def test_scripts_say_how_they_are_used(script):
    result = run_script(f'tools/{script}.sh', check=False)
    assert result.returncode == 2 and f'tools/{script}.sh' in result.stdout

"""Trainings of each family, interrupted and resumed, end as the one that nothing interrupted."""

import sys
from pathlib import Path
from random import Random

import pytest
import torch

from tools.analysis import soak
from xmodal.soak import KINDS
from xmodal.soak.compare import differences
from xmodal.soak.damage import damage_checkpoint, damage_pointer

# Each kind once or more: starting a process takes most of the time.
KINDS_OF = {
    'acerpe': ['kill -9', 'SIGTERM', 'kill -9 at last_checkpoint', 'damaged checkpoint'],
    'emkum': ['kill -9', 'kill -9 at a checkpoint', 'full disk'],
    'sgraf': ['SIGTERM', 'kill -9 at last_checkpoint', 'damaged checkpoint'],
    'lxmert': [
        'SIGINT (Ctrl-C)',
        'kill -9 at last_checkpoint',
        'kill in the middle of a write',
        'damaged last_checkpoint',
    ],
}
# With these a training is first killed right after its first checkpoint is named. Then each signal
# strikes one that goes on from there. With others, signals come too late, and it trains again.
SEEDS = {'acerpe': 70516, 'emkum': 930, 'sgraf': 4599, 'lxmert': 10809}


@pytest.fixture
def tiny(family_config, tmp_path):
    """Writes the config of a family."""

    def write(family):
        config = family_config(family)
        config.train_cfg.val_interval = 1
        config.train_dataloader.global_batch_size = 8
        config.dump(tmp_path / 'tiny.py')
        return str(tmp_path / 'tiny.py')

    return write


# As _plain_configs, for the trainings, which are not forked from this process.
PLAIN_CONFIGS = """
import mmengine.config.config
mmengine.config.config.FormatCode = lambda code, **_: (code, True)
"""


@pytest.fixture
def interrupt(tiny, monkeypatch, tmp_path, capsys):
    """Calls the tool, whose trainings import a plug-in: its status, and what it printed."""

    def call(family, kinds, *options, plant=''):
        monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '')
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / 'planted.py').write_text(PLAIN_CONFIGS + plant)
        short = ['--epochs=2', '--iterations=2', f'--kills={len(kinds)}', *options]
        arguments = [tiny(family), '--work-dir', str(tmp_path / 'soak'), *short, '--kinds', *kinds]
        arguments += ['--cfg-options', "custom_imports.imports=['planted']"]
        monkeypatch.setattr(sys, 'argv', ['soak.py', *arguments])
        try:
            soak.main()
        except SystemExit as error:
            return error.code, capsys.readouterr().out
        return 0, capsys.readouterr().out

    return call


def test_the_families_together_are_interrupted_in_every_way():
    assert {kind for kinds in KINDS_OF.values() for kind in kinds} == set(KINDS)


@pytest.mark.parametrize('family', KINDS_OF)
def test_interrupted_trainings_end_bit_identical(family, interrupt, tmp_path):
    count = len(KINDS_OF[family])
    status, printed = interrupt(family, KINDS_OF[family], f'--seed={SEEDS[family]}')
    assert status == 0, printed
    rows = [line.replace('│', ' ').split() for line in printed.splitlines()]
    assert ['all', str(count), str(count), '0', '0'] in rows
    assert [path.name for path in (tmp_path / 'soak').iterdir()] == ['reference']


#: Plug-ins with which a run is not resumed whole: what comes of it, and what is printed.
PLANTS = {
    'forgets the optimizer': (
        """
from mmengine.runner import Runner
from xmodal.engine.runner import XModalRunner
XModalRunner.resume = lambda runner, file, **_: Runner.resume(runner, file, resume_optimizer=False)
""",
        'different',
        '\noptimizer: ',
    ),
    'forgets random numbers': (
        """
from xmodal.engine.hooks import IterationSeedHook
IterationSeedHook.before_train_iter = lambda *_, **__: None
""",
        'different',
        '\nweights: ',
    ),
    'refuses': (
        """
from xmodal.engine.runner import XModalRunner
def resume(runner, file, **_):
    raise ValueError('planted')
XModalRunner.resume = resume
""",
        'would not stop or resume',
        'ValueError: planted',
    ),
}


@pytest.mark.parametrize('plant', PLANTS)
def test_a_run_that_is_not_resumed_whole_is_reported(plant, interrupt, tmp_path):
    code, outcome, detail = PLANTS[plant]
    # Of the moments at which it may be killed, one after the first of two epochs.
    moment = ['kill -9 at last_checkpoint']
    status, printed = interrupt('sgraf', moment, '--seed=1', plant=code)
    assert status == 1
    assert f'{tmp_path}/soak/run_1: {outcome}\n' in printed and detail in printed
    assert f'{tmp_path}/soak/run_1: {outcome}: ' in printed.splitlines()[-1]
    assert (tmp_path / 'soak/run_1/epoch_1.pth').is_file()


def test_damage_that_is_passed_over_is_reported(interrupt, monkeypatch):
    code = """
from xmodal import checkpoint_file
from xmodal.engine import work_dir
checkpoint_file.find_damage = work_dir.find_damage = lambda file: None
"""

    def flip(file, content, random):
        """A bit in the middle of a checkpoint, which is one of a weight."""
        half = len(content) // 2
        return content[:half] + bytes([content[half] ^ 1]) + content[half + 1 :]

    monkeypatch.setattr('xmodal.soak.damage._WAYS', {'with a flipped bit': flip})
    status, printed = interrupt('sgraf', ['damaged checkpoint'], plant=code)
    assert status == 1 and 'went on without a word' in printed


ONE = {
    'a': torch.tensor([0.0, torch.nan]),
    'b': [1, (2.0, torch.tensor(3))],
    'c': torch.ones(2, dtype=torch.bfloat16),
}


@pytest.mark.parametrize(
    'change, expected',
    [
        (dict(a=torch.tensor([-0.0, torch.nan])), ['a']),
        (dict(a=torch.tensor([1e-45, torch.nan])), ['a']),
        (dict(a=torch.tensor([0.0, torch.nan], dtype=torch.float64)), ['a']),
        (dict(a=torch.tensor([[0.0], [torch.nan]])), ['a']),
        (dict(a=[0.0]), ['a is a list, expected a Tensor']),
        (dict(b=[1, (-2.0, torch.tensor(3))]), ['b.1.0 is -2.0, expected 2.0']),
        (dict(b=[1, (2.0, torch.tensor(4))]), ['b.1.1']),
        (dict(b=[1]), ['b has 1 values, expected 2']),
        (dict(c=torch.tensor([1, 1.0078125], dtype=torch.bfloat16)), ['c']),
        (dict(d=1), ['d is not in the reference']),
    ],
)
def test_every_bit_counts(change, expected):
    copy = {'a': ONE['a'].clone(), 'b': [1, (2.0, torch.tensor(3))], 'c': ONE['c'].clone()}
    assert list(differences(copy, ONE)) == []
    assert list(differences(copy | change, ONE)) == expected
    assert list(differences({}, {'a': 1})) == ['a is missing']


def test_a_flipped_bit_is_one_of_a_record(tmp_path):
    file, values = tmp_path / 'epoch_1.pth', torch.arange(1000)
    (tmp_path / 'last_checkpoint').write_text('elsewhere/epoch_1.pth')
    seen = set()
    for seed in range(12):
        torch.save(values, file)
        time = file.stat().st_mtime_ns
        damage = damage_checkpoint(tmp_path, Random(seed))
        found = file.read_bytes()
        assert damage.file == file and file.stat().st_mtime_ns == time
        if damage.text.endswith('a flipped bit'):
            (place,) = (
                i
                for i, pair in enumerate(zip(found, damage.former, strict=True))
                if len(set(pair)) == 2
            )
            assert (found[place] ^ damage.former[place]).bit_count() == 1
            seen.add(torch.load(file).ne(values).sum().item())
        damage.mend()
        assert torch.load(file).equal(values)
    assert seen == {1}


def test_nothing_is_damaged_where_nothing_is(tmp_path):
    assert damage_checkpoint(tmp_path, Random(0)) is damage_pointer(tmp_path, Random(0)) is None
    for spoiled in (b'', bytes(20), b'epoch_0.pth', b'\xff\xfe'):
        (tmp_path / 'last_checkpoint').write_bytes(spoiled)
        assert damage_checkpoint(tmp_path, Random(0)) is None
    (tmp_path / 'last_checkpoint').write_bytes(b'')
    assert damage_pointer(tmp_path, Random(0)) is None


def test_the_tool_overwrites_no_folder(monkeypatch, tmp_path):
    Path(tmp_path, 'mine').touch()
    monkeypatch.setattr(sys, 'argv', ['soak.py', 'x.py', '--work-dir', str(tmp_path)])
    with pytest.raises(FileExistsError, match='already exists: move it away'):
        soak.main()

"""Which checkpoint of its folder a run goes on from."""

import os

import pytest
import torch
from mmengine.config import Config

from xmodal import checkpoint_file
from xmodal.engine import work_dir
from xmodal.engine.beginning import set_beginning
from xmodal.engine.work_dir import has_begun, latest_checkpoint, set_last_checkpoint
from xmodal.errors import ConfigError


@pytest.fixture
def run(tmp_path):
    """Three checkpoints, the second named as the last, and one that is no resting place."""
    for age, name in enumerate(('best_epoch_9', 'epoch_3', 'epoch_2', 'iter_5')):
        torch.save({'state_dict': {'w': torch.ones(9)}}, tmp_path / f'{name}.pth')
        os.utime(tmp_path / f'{name}.pth', (100 - age, 100 - age))
    set_last_checkpoint(tmp_path, '/where/it/was/made/epoch_2.pth')
    return tmp_path


def damage(file):
    content = bytearray(file.read_bytes())
    content[content.index(torch.ones(9).numpy().tobytes())] ^= 1
    file.write_bytes(content)


def test_the_one_that_is_named_is_taken_wherever_the_folder_is(run, capsys):
    assert latest_checkpoint(run) == run / 'epoch_2.pth'
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        (b'/made/epoch_7.pth', "last_checkpoint names '/made/epoch_7.pth', which is not there"),
        (b'/made/epo', "names '/made/epo', which"),
        (b'\0' * 30, r"names '\\x00"),
        (b'', "names '', which"),
        (b'\xff' * 5000, 'names '),
        (None, 'there is no last_checkpoint'),
    ],
    ids=['nowhere', 'half a path', 'nulls', 'nothing', 'noise', 'no file'],
)
def test_if_none_is_named_it_is_the_newest_and_that_is_said(run, capsys, content, said):
    pointer = run / 'last_checkpoint'
    pointer.unlink() if content is None else pointer.write_bytes(content)
    assert latest_checkpoint(run) == run / 'epoch_3.pth'
    printed = capsys.readouterr().err
    assert said.replace(r'\\', '\\') in printed
    assert 'Taking epoch_3.pth, the newest whole checkpoint' in printed


def test_damaged_ones_are_passed_over(run, capsys):
    damage(run / 'epoch_2.pth')
    assert latest_checkpoint(run) == run / 'epoch_3.pth'
    assert 'epoch_2.pth: it is damaged: the checksum' in capsys.readouterr().err
    (run / 'epoch_3.pth').write_bytes(b'\0' * 50)
    assert latest_checkpoint(run) == run / 'iter_5.pth'
    damage(run / 'iter_5.pth')
    with pytest.raises(ValueError, match=r'(?s)no whole checkpoint .*epoch_2.*iter_5.*epoch_3'):
        latest_checkpoint(run)


def test_a_folder_without_a_run_has_none(tmp_path):
    assert latest_checkpoint(tmp_path) is None and not has_begun(tmp_path)
    set_last_checkpoint(tmp_path, 'epoch_1.pth')
    assert has_begun(tmp_path)
    with pytest.raises(ValueError, match="names 'epoch_1.pth', which is not there"):
        latest_checkpoint(tmp_path)


def test_the_name_is_written_whole_or_not_at_all(run, monkeypatch):
    def crash(_):
        raise OSError(5, 'crashed')

    monkeypatch.setattr(os, 'fsync', crash)
    with pytest.raises(OSError, match='crashed'):
        set_last_checkpoint(run, 'epoch_3.pth')
    assert latest_checkpoint(run) == run / 'epoch_2.pth'


def test_a_checkpoint_is_checked_once_until_it_is_read_or_changes(tmp_path, monkeypatch):
    checked = []
    find = checkpoint_file.find_damage
    for module in (checkpoint_file, work_dir):
        monkeypatch.setattr(module, 'find_damage', lambda file: checked.append(file) or find(file))
    file = tmp_path / 'epoch_1.pth'
    torch.save({'state_dict': {}}, file)
    assert work_dir.latest_checkpoint(tmp_path) == file
    checkpoint_file.read_checkpoint(file)
    assert len(checked) == 1
    checkpoint_file.read_checkpoint(file)
    assert len(checked) == 2
    work_dir.latest_checkpoint(tmp_path)
    file.write_bytes(b'<html>, of another size')
    with pytest.raises(ValueError, match='a web page'):
        checkpoint_file.read_checkpoint(file)


def test_a_checkpoint_may_be_a_link_to_another_disk(run, tmp_path):
    other_disk = tmp_path / 'other_disk'
    other_disk.mkdir()
    (run / 'epoch_2.pth').rename(other_disk / 'large.pth')
    (run / 'epoch_2.pth').symlink_to(other_disk / 'large.pth')
    config = Config(dict(work_dir=str(run)))
    set_beginning(config, 'auto')
    assert config.resume and config.load_from == str(run / 'epoch_2.pth')
    with pytest.raises(ConfigError, match='holds another run'):
        set_beginning(Config(dict(work_dir=str(run))), str(other_disk / 'large.pth'))


def test_a_best_checkpoint_alone_is_nothing_to_resume_from(tmp_path):
    """Of a run whose other checkpoints were deleted; the advice was to add --resume."""
    best = tmp_path / 'best_recall_epoch_1.pth'
    best.touch()
    with pytest.raises(ConfigError, match=rf'and nothing to resume from: .* load_from={best}$'):
        set_beginning(Config(dict(work_dir=str(tmp_path))), 'auto')

"""The limits that docs/data.md names are those of the readers."""

from pathlib import Path

from xmodal import files
from xmodal.datasets import image_file, json_stream, tar_shard


def test_the_sizes_of_lines_files_and_members_are_those_of_the_readers():
    page = ' '.join(Path('docs/data.md').read_text('utf-8').split())
    for statement, limit in (
        ('a line may have {} MiB', json_stream._MAX_LINE),
        ('a JSON file that is read at once {} GiB', files._MAX_BYTES / 1024),
        ('a member that is longer than {} MiB', image_file.MAX_BYTES),
        ('or {} MiB for a text, are left out', tar_shard._MAX_TEXT_BYTES),
        ('more than {} MiB; or no regular file', image_file.MAX_BYTES),
    ):
        assert statement.format(f'{limit / 2**20:g}') in page

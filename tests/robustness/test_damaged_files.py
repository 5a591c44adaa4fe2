"""Every reader's file cut off, in other encodings, with garbage, nested deeply and continued."""

import json

import pytest
from damages import cut, garbage, other_files, texts, write
from readers import READERS, ids
from trials import require_right
from wrong_values import to_json, to_lines, to_pickle


@pytest.mark.parametrize('reader', READERS, ids=ids)
def test_a_damaged_file_is_named(folders, reader, trials):
    folder = folders(reader)
    file, right = folder / reader.file, reader.dump(reader.content)
    damages = [cut, garbage, other_files, *([texts] if reader.dump is not to_pickle else [])]
    done = []
    for damage in damages:
        for name, content in damage(right):
            if is_as_right(reader, content):
                continue
            write(file, content)
            given = f'{reader.file}: {name}'
            # One byte of a pickle is another number or letter, which may be right.
            done.append(
                trials.run(
                    reader.name.split(',')[0],
                    given,
                    lambda: reader.read(folder, reader.modes[-1]),
                    [file],
                    is_right=reader.dump is to_pickle and name.startswith('byte'),
                )
            )
    require_right(done)


def is_as_right(reader, content):
    """Whether a damage leaves what is right: the same file, or fewer whole lines."""
    if reader.dump is to_lines:
        try:
            lines = content.decode().splitlines()
            return bool(lines) and all(json.loads(line) in reader.content for line in lines)
        except (ValueError, RecursionError):
            return False
    return content.rstrip() == reader.dump(reader.content).rstrip()


@pytest.mark.parametrize('reader', [r for r in READERS if r.dump is not to_pickle], ids=ids)
def test_marks_and_spaces_around_json_are_read(folders, reader):
    folder = folders(reader)
    content = reader.dump(reader.content)
    expected = reader.read(folder, reader.modes[-1])
    changed = [b'\xef\xbb\xbf' + content, content + b' \n\r\n\t']
    if reader.dump is to_json:
        changed.append(json.dumps(reader.content, indent=3).encode().replace(b'\n', b'\r\n'))
    for new in changed:
        write(folder / reader.file, new)
        found = reader.read(folder, reader.modes[-1])
        assert str(found) == str(expected) or reader.name in ('RegionStore', 'Vocabulary')

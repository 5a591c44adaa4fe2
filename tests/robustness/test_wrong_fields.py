"""Every field of every reader's file, with each of the wrong values."""

import pytest
from damages import write
from readers import READERS, TEST, ids
from trials import require_right
from wrong_values import ANOTHER, MISSING, WRONG, paths, replace

# What other files refer to: the error may be that of the file which has the reference.
NAMED_BY_OTHERS = ('file_name', 'url', 'regions', 'images', 'id_bytes', 'feature_dims', 'dtype')


@pytest.mark.parametrize('reader', READERS, ids=ids)
def test_the_right_file_is_read(folders, reader):
    folder = folders(reader)
    for mode in reader.modes:
        assert reader.read(folder, mode)


@pytest.mark.parametrize('reader', READERS, ids=ids)
def test_each_field_with_each_wrong_value(folders, reader, trials):
    folder = folders(reader)
    file = folder / reader.file
    done = []
    for mode in reader.modes:
        for pattern, kinds in reader.fields.items():
            accepted = kinds[mode] if isinstance(kinds, dict) else kinds
            if accepted is None:  # this mode does not read it
                continue
            path, another = paths(reader.content, pattern)
            for name, value in WRONG.items():
                if not path and value in (ANOTHER, MISSING):
                    continue
                content = reader.dump(replace(reader.content, path, value, another))
                if content == reader.dump(reader.content):
                    continue
                write(file, content)
                given = f'{reader.file} with {pattern or "its content"}: {name}' + (
                    ' (test mode)' if mode == TEST else ''
                )
                done.append(
                    trials.run(
                        reader.name.split(',')[0],
                        given,
                        lambda mode=mode: reader.read(folder, mode),
                        [folder if pattern.endswith(NAMED_BY_OTHERS) else file],
                        name in accepted,
                    )
                )
    require_right(done)

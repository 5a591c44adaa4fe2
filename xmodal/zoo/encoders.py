"""What a config names as the start of its own parts: ``pretrained='zoo:NAME'``.

Encoders of others are listed as ``Encoders`` in ``configs/emkum/metafile.yml``. The folder of a
model has the vocabulary for a tokenizer.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from xmodal.cache import cache_folder
from xmodal.files import explain_errors, read_text
from xmodal.version import __version__
from xmodal.weights import WEIGHT_SOURCES
from xmodal.zoo.download import download, once
from xmodal.zoo.folder import find_folder
from xmodal.zoo.metafile import CONFIGS

_LAYOUT = '{Encoders: [{Name: …, Weights: …}, …]}'


def read_encoders() -> dict[str, str]:
    """URLs of encoders by their names."""
    file = CONFIGS / 'emkum' / 'metafile.yml'
    with explain_errors(file, _LAYOUT):
        content = yaml.safe_load(read_text(file))
        return {encoder['Name']: encoder['Weights'] for encoder in content['Encoders']}


@WEIGHT_SOURCES.register_module(name='zoo')
def find_encoder(name: str) -> Path:
    """Downloads and converts an encoder of data2vec 2.0 once, or finds the folder of a model.

    Returns:
        A checkpoint (images), or a folder as transformers reads it (texts, vocabularies).

    Raises:
        FileNotFoundError: when there is nothing of this name, or its authors moved the file.
        FileError: when the file cannot be read without running its code.
    """
    encoders = read_encoders()
    if name not in encoders:
        if folder := find_folder(name):
            return folder
        raise FileNotFoundError(
            f'the zoo has no encoder of this name, only {sorted(encoders)}, and no folder of a '
            'model, such as acerpe-shapes'
        )
    url = encoders[name]
    folder = cache_folder() / 'converted' / f'{name}-{__version__}'
    result = 'text' if name.endswith('-text') else 'image.pth'

    def convert() -> None:
        from xmodal.converters.data2vec2 import convert_file  # takes seconds to import

        source = download(url, cache_folder() / 'downloads' / f'{name}-{url.rsplit("/", 1)[-1]}')
        with TemporaryDirectory(dir=folder.parent) as new:
            convert_file(source, Path(new) / 'all' / result)
            (Path(new) / 'all').rename(folder)

    return once(folder, convert) / result

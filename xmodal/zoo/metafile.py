"""What ``configs/*/metafile.yml`` say of the models; the form is OpenMMLab's model index.

Of each model: ``Name``, ``Alias`` (a shorter name), ``Config``, ``Task``, ``Weights`` (a URL, or a
folder of this package), ``Weights Metadata`` (how to convert them, licence, hash and size where
they are known), ``Results`` measured here, and ``Quoted`` ones.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import yaml

from xmodal.files import explain_errors, read_text
from xmodal.packaged import ROOT, is_config_file

CONFIGS = ROOT / 'configs'

_LAYOUT = (
    '{Collections: [{Name: …, Paper: {Title: …}}], Models: [{Name: …, Config: …, Task: …}, …]}'
)


@dataclass(frozen=True)
class ModelEntry:
    """A model of the zoo.

    Attributes:
        name: the short name where there is one.
        full_name: folder and name of the config.
        config: its config, ``configs/…``.
        task: what the config trains or tests.
        paper: the collection, as 'ACE-RPE'.
        title: of the paper.
        weights: a URL, a folder inside the package (``zoo/weights/…``), or None.
        page: where the authors offer weights that only a person can download.
        converter: of files of other projects; None for weights of this one.
        sha256: of the file of weights, if it is known.
        size: of the file in bytes, if it is known.
        license: of the weights.
        parameters: how many, without heads.
        results: measured here.
        quoted: from papers.
    """

    name: str
    full_name: str
    config: str
    task: str
    paper: str
    title: str
    weights: str | None = None
    page: str | None = None
    converter: str | None = None
    sha256: str | None = None
    size: int | None = None
    license: str | None = None
    parameters: int | None = None
    results: list[dict] = field(default_factory=list)
    quoted: list[dict] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """The names that it is found by."""
        return {self.name, self.full_name}

    @property
    def is_shipped(self) -> bool:
        """Whether the weights are a part of the package."""
        return self.weights is not None and '://' not in self.weights

    @property
    def config_file(self) -> Path:
        """Where its config is."""
        return ROOT / self.config


@cache
def read_entries(folder: Path) -> tuple[ModelEntry, ...]:
    """The models of all metafiles below a folder of configs, in their order."""
    files = sorted(folder.glob('*/metafile.yml'))
    return tuple(entry for file in files for entry in _read_metafile(file))


def _read_metafile(file: Path) -> Iterable[ModelEntry]:
    loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)  # of C, ten times as fast
    with explain_errors(file, _LAYOUT):
        content = yaml.load(read_text(file), loader)
        titles = {each['Name']: each['Paper']['Title'] for each in content['Collections']}
        for model in content['Models']:
            of_weights = model.get('Weights Metadata', {})
            yield ModelEntry(
                name=model.get('Alias', model['Name']),
                full_name=model['Name'],
                config=model['Config'],
                task=model['Task'],
                paper=model['In Collection'],
                title=titles[model['In Collection']],
                weights=model.get('Weights'),
                page=of_weights.get('Page'),
                converter=of_weights.get('Converter'),
                sha256=of_weights.get('SHA256'),
                size=of_weights.get('Size'),
                license=of_weights.get('License'),
                parameters=model.get('Metadata', {}).get('Parameters'),
                results=model.get('Results', []),
                quoted=model.get('Quoted', []),
            )


def list_models(
    pattern: str = '*',
    task: str | None = None,
    paper: str | None = None,
    pretrained: bool = False,
) -> list[str]:
    """Names of models.

    Args:
        pattern: of a name, as ``'albef*'``; a part of a name counts as well. In any case.
        task: as 'retrieval'; a part of it or of the model's name counts, as 'vqa', in any case.
        paper: as 'ACE-RPE' or 'acerpe'; a part counts, in any case and without hyphens.
        pretrained: only models with weights, shipped or downloaded.

    Returns:
        Names for :func:`xmodal.get_model`, in the order of the metafiles.

    Raises:
        ValueError: for a task or a paper of no model; names those that there are.
    """
    entries = read_entries(CONFIGS)
    for key, part, text in (('task', task, _task), ('paper', paper, _paper)):
        if not any(_is_in(part, text(entry)) for entry in entries):
            known = ', '.join(dict.fromkeys(getattr(entry, key) for entry in entries))
            raise ValueError(f"no model has the {key} '{part}', expected a part of one of {known}")
    pattern = (pattern if any(sign in pattern for sign in '*?[') else f'*{pattern}*').lower()
    return [
        entry.name
        for entry in entries
        if any(fnmatchcase(name.lower(), pattern) for name in entry.names)
        and _is_in(task, _task(entry))
        and _is_in(paper, _paper(entry))
        and (entry.weights or not pretrained)
    ]


def _task(entry: ModelEntry) -> str:
    return f'{entry.task} {entry.name} {entry.full_name}'


def _paper(entry: ModelEntry) -> str:
    return f'{entry.paper} {entry.full_name}'


def _is_in(part: str | None, text: str) -> bool:
    return part is None or _plain(part) in _plain(text)


def _plain(text: str) -> str:
    return ''.join(letter for letter in text.lower() if letter.isalnum())


def find_entry(name: str) -> ModelEntry | None:
    """The model of a name, or None."""
    return next((entry for entry in read_entries(CONFIGS) if name in entry.names), None)


def no_model(name: str) -> ValueError:
    """The error about a name that no model has, with the nearest ones."""
    if Path(name).is_file() and is_config_file(name):
        return ValueError(f'{name} is a config: give its checkpoint, too')
    if Path(name).is_file():
        return ValueError(
            f'{name} is no config; if it is a checkpoint, give the folder of its run in this '
            'place, and the file as the checkpoint (--checkpoint)'
        )
    names = [n for entry in read_entries(CONFIGS) for n in (entry.name, entry.full_name)]
    near = get_close_matches(name.lower(), dict.fromkeys(names), n=3, cutoff=0.5)
    hint = f'did you mean {" or ".join(near)}?' if near else 'xmodal.list_models() has all names'
    return ValueError(
        f"there is no model '{name}', no folder of one and no file of this name: {hint}"
    )

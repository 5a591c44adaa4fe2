"""What the unfinished runs of a table need and a machine lacks, by the keys of their configs."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import timm
import torch
from transformers.utils import cached_file

from xmodal.ablation.plan import Plan
from xmodal.ablation.runs import Run
from xmodal.config_text import sections
from xmodal.packaged import find_file
from xmodal.weights import find_weights

# Keys that name a file, files or a folder: below the `data_root` next to them, or as they are.
_BELOW_ROOT = (
    'ann_file', 'answer_file', 'answer_list', 'image_data', 'image_info', 'instances', 'proposals',
)  # fmt: skip
_AS_THEY_ARE = ('choices', 'class_names', 'scene_graphs', 'store', 'templates', 'vocabulary')
# One of these is enough of a model on the hub, or in a folder.
_WEIGHTS = ('model.safetensors', 'pytorch_model.bin')
_VOCABULARIES = ('tokenizer.json', 'vocab.txt', 'vocab.json')


def missing_by_stage(plan: Plan) -> dict[str, list[str]]:
    """What is missing for the unfinished runs of each stage, if anything is, file by file.

    Nothing is built, loaded or downloaded. Checkpoints that another run makes are not missing.
    """
    missing: dict[str, dict[str, None]] = {}
    for run in plan.runs:
        missing.setdefault(run.stage.name, {}).update(dict.fromkeys(missing_files(run)))
    return {stage: list(files) for stage, files in missing.items() if files}


def missing_gpus(plan: Plan) -> str | None:
    """How many GPUs of the paper's a machine lacks for unfinished runs; None for none."""
    found, needed = torch.cuda.device_count(), plan.table.gpus
    if found >= needed or all(run.is_done for run in plan.runs):
        return None
    return f'GPUs: the paper has {needed}, this machine {found}'


def list_missing(plan: Plan) -> None:
    """Prints what this machine lacks for the unfinished runs, stage by stage."""
    for stage, files in missing_by_stage(plan).items():
        print(f'# {stage}: {len(files)} missing')
        for file in files:
            print(f'#   {file}')
    if gpus := missing_gpus(plan):
        print(f'# {gpus}')


def missing_files(run: Run) -> Iterator[str]:
    """Files, folders and pretrained weights that a run still needs and that are not there."""
    config = run.config
    steps = ['train', 'val'] * run.lacks_training + ['test'] * run.lacks_test
    for step in steps:
        for part in ('dataloader', 'evaluator', 'cfg'):
            yield from _missing_data(config.get(f'{step}_{part}'))
    model = dict(config.get('model') or {})
    if steps:
        yield from _missing_data(model)
        yield from _missing_vocabulary(model.pop('data_preprocessor', {}))
    if run.lacks_training:
        yield from _missing_weights(model)
        if run.source is None:
            yield from _absent(_names(config.get('load_from')))


def _missing_data(config: object) -> Iterator[str]:
    """Files and folders of datasets, metrics and heads."""
    for _, section in sections(config):
        root = section.get('data_root', '')
        for key in _BELOW_ROOT:
            yield from _absent(Path(root, name) for name in _names(section.get(key)))
        for key in _AS_THEY_ARE:
            yield from _absent(_names(section.get(key)))
        if section.get('type') == 'PrecompDataset':
            split = section['split']
            yield from _absent(Path(root, f'{split}_{part}') for part in ('ims.npy', 'caps.txt'))
        elif 'data_prefix' in section:
            yield from _absent(
                Path(root, folder) for folder in (section['data_prefix'] or {}).values()
            )
        elif root and 'ann_file' not in section:
            yield from _absent([root])


def _missing_vocabulary(preprocessor: dict) -> Iterator[str]:
    """The word pieces of a tokenizer."""
    for _, section in sections(preprocessor):
        yield from _absent_model(section.get('pretrained'), 'vocabulary', _VOCABULARIES)


def _missing_weights(model: dict) -> Iterator[str]:
    """Pretrained weights, and sizes that are a model's."""
    for _, section in sections(model):
        weights, sizes = section.get('pretrained'), section.get('config')
        if weights is True:
            known = timm.get_pretrained_cfg(section.get('arch', ''))  # None of a plug-in's own
            weights = known and known.hf_hub_id
        yield from _absent_model(weights, 'weights', _WEIGHTS)
        yield from _absent_model(sizes, 'sizes', ('config.json',))


def _absent_model(name: object, what: str, files: Iterable[str]) -> Iterator[str]:
    """A name that is no file, and no folder, package or cached model with one of ``files``."""
    if not isinstance(name, str) or Path(name).is_file():
        return
    if name.startswith('package:'):  # other sources may download
        try:
            name = find_weights(name, what)
        except FileNotFoundError:
            yield f'{name} ({what})'
            return
    if not any(_is_cached(name, file) for file in files):
        yield f'{name} ({what})'


def _is_cached(name: str, file: str) -> bool:
    try:
        return cached_file(name, file, local_files_only=True) is not None
    except OSError:
        return False


def _absent(paths: Iterable[str | Path]) -> Iterator[str]:
    yield from (str(path) for path in paths if not find_file(path).exists())


def _names(value: object) -> list[str]:
    """A name, or a list of them; other values name no file."""
    names = value if isinstance(value, list) else [value]
    return [name for name in names if isinstance(name, str)]

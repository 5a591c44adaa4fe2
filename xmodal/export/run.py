"""What a run, or a model by name, has to export."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config
from torch import nn

from xmodal.apis.models import load_model, locate
from xmodal.checkpoint_file import read_checkpoint
from xmodal.engine.launch import read_config
from xmodal.engine.sources import custom_modules
from xmodal.engine.work_dir import config_and_checkpoint
from xmodal.files import read_json
from xmodal.visualization.charts import draw_curves, read_scalars, select_curves
from xmodal.zoo.folder import CARD, CONFIG, WEIGHTS
from xmodal.zoo.metafile import CONFIGS, ModelEntry, find_entry, read_entries


class Run(NamedTuple):
    """A trained model.

    Attributes:
        model: with its weights, in eval mode.
        config: its config.
        card: what the model card says: see :func:`xmodal.zoo.card.write_card`.
    """

    model: nn.Module
    config: Config
    card: dict[str, Any]


def read_run(name: str, checkpoint: Path | None = None, metrics_file: Path | None = None) -> Run:
    """Reads the folder of a run, or a model by name.

    Args:
        name: folder of a run, or what :func:`xmodal.get_model` takes.
        checkpoint: of the run, None for the last one; or the weights of the model of the name, in
            the place of those that would be downloaded.
        metrics_file: of a test; None for that of the checkpoint's last one in its folder ``test``.

    Raises:
        FileNotFoundError: when the folder has no config or no checkpoint.
        ValueError: when there is neither a folder nor a model of this name.
    """
    folder, card = Path(name), {}
    is_exported = all((folder / file).is_file() for file in (CONFIG, WEIGHTS))
    if folder.is_dir() and not is_exported:
        config_file, checkpoint = config_and_checkpoint(folder, checkpoint)
        config = read_config(str(config_file))
        if metrics_file is None:
            latest_first = sorted(folder.glob('test/*/*.json'), reverse=True)
            metrics_file = next((x for x in latest_first if _tests(x, checkpoint)), None)
        card = _describe(config, checkpoint)
        if any(folder.glob('*/vis_data/scalars.json')):
            curves = select_curves(read_scalars(folder))
            card['figures'] = {'Training': draw_curves(curves)} if curves else {}
    else:
        if checkpoint is None:
            card = _of_card(folder / CARD) if folder.is_dir() else _of_entry(find_entry(name))
        config, checkpoint = locate(name, checkpoint or True)
    if metrics_file:
        metrics = read_json(metrics_file)
        # Those of an average of weights are of another model.
        card['metrics'] = {k: v for k, v in metrics.items() if not k.startswith('ema/')}
    return Run(load_model(config, checkpoint), config, card)


def _tests(metrics_file: Path, checkpoint: Path) -> bool:
    """Whether metrics are those of a test of a checkpoint, as the log of the test says."""
    config = metrics_file.parent / 'vis_data' / 'config.py'
    if not config.is_file():
        return False
    return Path(read_config(str(config)).get('load_from') or '').resolve() == checkpoint.resolve()


def _describe(config: Config, checkpoint: Path) -> dict[str, Any]:
    """What the metafile and a checkpoint say of a run."""
    meta = read_checkpoint(checkpoint).get('meta', {})
    entry = _namesake(config)
    is_changed = entry is not None and not _is_copy(config, _read(entry))
    name = f'`{Path(config.filename).name}`{" (changed)" if is_changed else ""}'
    lines = [f'Config {name}, epoch {meta.get("epoch")}, seed {meta.get("seed")}']
    # MMEngine writes its version and the commit of the working directory in one.
    if commit := re.search(r'([0-9a-f]{40})$', str(meta.get('mmengine_version', ''))):
        lines.append(f'Commit {commit[1]}')
    if modules := custom_modules(config):
        lines.append(f'Components of its own: first `import {", ".join(modules)}`')
    if entry is None or is_changed:
        return {'provenance': lines}
    lines.append(f'Command `python tools/train.py {entry.config}`')
    return {'description': _description(entry), 'provenance': lines}


def _of_entry(entry: ModelEntry | None) -> dict[str, Any]:
    """What the metafile says of released weights, which have a licence of their own."""
    if entry is None:  # a model of the hub
        return {}
    lines = [f'Weights {entry.weights or entry.page}'] if entry.converter else []
    license = entry.license and entry.license.lower()
    return {'description': _description(entry), 'license': license, 'provenance': lines}


def _of_card(file: Path) -> dict[str, Any]:
    """The licence in the card of a folder of a model."""
    text = file.read_text(encoding='utf-8') if file.is_file() else ''
    found = re.search(r'^license: (\S+)$', text.partition('\n---')[0], re.MULTILINE)
    return {'license': found[1]} if found else {}


def _description(entry: ModelEntry) -> str:
    return f'{entry.paper} (*{entry.title}*): {entry.task.lower()}, `{entry.config}`.'


def _namesake(config: Config) -> ModelEntry | None:
    """The model of the zoo whose config a run's is, or was; other families share its name."""
    for entry in read_entries(CONFIGS):
        is_same_name = entry.config_file.name == Path(config.filename).name
        if is_same_name and _read(entry).model.type == config.model.type:
            return entry
    return None


def _read(entry: ModelEntry) -> Config:
    return read_config(str(entry.config_file))


def _is_copy(config: Config, of_entry: Config) -> bool:
    """Whether a run's config has the values of another, but for what each command adds to it."""
    added = {'launcher', 'work_dir', 'resume'}
    if config.get('resume'):
        added.add('load_from')  # the checkpoint that the run went on from
    run, entry = (
        {key: value for key, value in each.to_dict().items() if key not in added}
        for each in (config, of_entry)
    )
    return run == entry

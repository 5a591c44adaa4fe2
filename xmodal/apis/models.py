"""Models by name."""

from collections.abc import Callable
from pathlib import Path

from mmengine.config import Config
from torch import nn

from xmodal.arguments import accepted_parameters
from xmodal.build_functions import find_component
from xmodal.engine.checkpoint import load_weights
from xmodal.engine.launch import read_config
from xmodal.engine.work_dir import config_and_checkpoint, has_begun
from xmodal.errors import ConfigError
from xmodal.registry import MODELS, register_all
from xmodal.zoo.checkpoints import find_checkpoint
from xmodal.zoo.folder import WEIGHTS, find_folder, read_folder
from xmodal.zoo.metafile import find_entry, no_model


def load_model(
    config: str | Path | Config, checkpoint: str | Path | None, device: str = 'cpu'
) -> nn.Module:
    """Builds the model of a config with the weights of a checkpoint, in eval mode.

    It has no momentum teacher, which only training needs.

    Args:
        config: a config or a config file.
        checkpoint: checkpoint file of a run, converted weights, or a name of the zoo; None for a
            model that needs none (``CrossModalModel.needs_checkpoint``).
        device: device of the model.

    Raises:
        ConfigError: if there is no checkpoint and the model needs one.
        FileNotFoundError: if a file is missing.
        ValueError: if the weights do not fit the model of the config.
    """
    config = config if isinstance(config, Config) else read_config(config)
    if checkpoint is None and needs_checkpoint(config):
        raise ConfigError(f'{config.filename} has no weights: give a checkpoint, too')
    model = _build(config)
    if checkpoint is not None:
        load_weights(model, checkpoint_of(checkpoint))
    return model.to(device).eval()


def needs_checkpoint(config: Config) -> bool:
    """Whether the model of a config has no weights without a checkpoint."""
    register_all()
    return getattr(find_component(config.model.type, MODELS), 'needs_checkpoint', True)


def get_model(name: str, pretrained: bool | str | Path = True, device: str = 'cpu') -> nn.Module:
    """Builds a model by its name, in eval mode.

    Args:
        name: of the zoo (:func:`xmodal.list_models`), a folder that ``save_pretrained`` wrote,
            ``user/name`` of one on the Hugging Face hub, or the folder of a trained run, of which
            it takes the latest checkpoint, not the best one.
        pretrained: False for random weights; or a file: a checkpoint, or the one that the authors
            of the model released.
        device: device of the model.

    Raises:
        ValueError: if there is no such model; names the nearest ones.
        FileNotFoundError: if there are no weights, or a file that the config names is missing.
    """
    config, checkpoint = locate(name, pretrained)
    if checkpoint is None:
        return _build(config).to(device).eval()
    return load_model(config, checkpoint, device)


def locate(name: str | Path, pretrained: bool | str | Path = True) -> tuple[Config, Path | None]:
    """The config and the checkpoint that a name stands for; see :func:`get_model`."""
    if isinstance(name, Config):
        raise ConfigError('a config has no weights: give a checkpoint, too')
    source = None if isinstance(pretrained, bool) else pretrained
    if entry := find_entry(str(name)):
        if entry.is_shipped and source is None:
            folder = find_folder(entry.name)
            return read_folder(folder), folder / WEIGHTS if pretrained else None
        config = read_config(str(entry.config_file))
        if not pretrained:
            return config, None
        return config, find_checkpoint(entry, config, source)
    if folder := find_folder(name):
        return read_folder(folder), Path(source or folder / WEIGHTS) if pretrained else None
    if has_begun(name):
        file, checkpoint = config_and_checkpoint(Path(name), source and Path(source))
        return read_config(str(file)), checkpoint if pretrained else None
    raise no_model(str(name))


def checkpoint_of(name: str | Path) -> str | Path:
    """A file as it is; the checkpoint of a name of the zoo, or of a folder of a model.

    A name that stands for nothing is returned, too: what reads it says what is missing.
    """
    if Path(name).is_file():
        return name
    is_known = find_entry(str(name)) or (Path(name) / WEIGHTS).is_file()
    return locate(name)[1] if is_known else name


def method_of(model: nn.Module, name: str) -> Callable:
    """A method that an inferencer calls, which models of some tasks do not have.

    Raises:
        ValueError: says which methods of an inferencer are for which models.
    """
    if hasattr(model, name):
        return getattr(model, name)
    raise ValueError(
        f'{type(model).__name__} has no {name}(): similarity(), match(), heatmap() and anchors() '
        'of an Inferencer are for models that were pre-trained, or fine-tuned for retrieval or '
        'grounding; predict() is for those of other tasks and takes images with their texts'
    )


def _build(config: Config) -> nn.Module:
    """The model of a config, without the momentum teacher."""
    register_all()
    options = dict(config.model)
    parameters, _ = accepted_parameters(find_component(config.model.type, MODELS))
    if 'momentum' in parameters:
        options['momentum'] = None
    return MODELS.build(options)

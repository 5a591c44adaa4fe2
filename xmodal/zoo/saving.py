"""Writes a model to a folder, and a folder to the hub."""

import copy
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from mmengine.config import Config
from safetensors.torch import save
from torch import Tensor, nn

from xmodal.arguments import accepted_parameters
from xmodal.config_text import HERE, sections
from xmodal.errors import ConfigError
from xmodal.files import name_in_errors
from xmodal.models.base import MomentumModel
from xmodal.registry import MODELS
from xmodal.version import __version__
from xmodal.weights import find_weights
from xmodal.zoo.card import write_card
from xmodal.zoo.folder import CARD, CONFIG, WEIGHTS, read_folder

_START = ('pretrained', 'word_vectors')  # what an encoder starts from
_TRAINING = {'momentum': None, 'queue_length': 0}  # arguments of a model that has neither
_KEYS = ('model', 'test_dataloader', 'test_cfg', 'test_evaluator', 'default_scope')


def save_pretrained(
    model: nn.Module,
    config: Config,
    folder: str | Path,
    dtype: torch.dtype | None = None,
    card: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a model to a folder that :func:`xmodal.get_model` and the inferencers read.

    Momentum teachers and queues are left out. Files that the model's config names (vocabularies,
    answer lists) and an extractor's weights are copied, and encoders do not look for the weights
    that they started from.

    Args:
        model: the model.
        config: its config; its test set defines the preprocessing of images and texts.
        folder: where to; it may exist.
        dtype: of the weights in the file; None for what they have. They are read as float32.
        card: what the model card says beside the config; see :func:`write_card`.

    Returns:
        The folder.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with name_in_errors(folder), TemporaryDirectory(dir=folder.parent, prefix='.') as private:
        content = _write_model(model, config, Path(private), dtype)  # whole, or not at all
        folder.mkdir(exist_ok=True)
        for file in Path(private).iterdir():
            shutil.move(file, folder / file.name)
    write_card(folder / CARD, content, model, **(card or {}))
    return folder


def _write_model(
    model: nn.Module, config: Config, folder: Path, dtype: torch.dtype | None
) -> Config:
    """Writes config, weights and the files that it names; returns the config."""
    kept = {key: config[key] for key in _KEYS if config.get(key) is not None}
    content = Config(copy.deepcopy(kept))  # the caller's config stays as it is
    copied: dict[str, Path] = {}
    _make_portable(content.model, model, folder, copied)
    _copy_extractors(content.get('test_dataloader', {}), folder, copied)
    (folder / CONFIG).write_text(content.pretty_text, encoding='utf-8')
    weights = _portable_weights(model, read_folder(folder), dtype)
    # Not by `save_file`: its file is private, and its error of a full disk is no OSError.
    (folder / WEIGHTS).write_bytes(save(weights, {'format': 'pt', 'xmodal': __version__}))
    return content


def push_to_hub(folder: str | Path, name: str, private: bool = False) -> str:
    """Uploads a folder to the Hugging Face hub, with the token of ``hf auth login``.

    Args:
        folder: that :func:`save_pretrained` wrote.
        name: ``user/name`` of the repository, which is made if it does not exist.
        private: whether a new repository is.

    Returns:
        The URL of the commit.

    Raises:
        ConfigError: when the hub can't be reached or refuses it.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name='xmodal', library_version=__version__)
    try:
        api.create_repo(name, private=private, exist_ok=True)
        return api.upload_folder(repo_id=name, folder_path=folder, commit_message='Model of xmodal')
    except Exception as error:  # of the hub, of HTTP, of a token
        raise ConfigError(
            f"'{name}' was not uploaded, since the hub says: {str(error).splitlines()[0]} "
            '(`hf auth login` needs a token that may write; --to folder needs no hub)'
        ) from error


def _portable_weights(
    model: nn.Module, config: Config, dtype: torch.dtype | None
) -> dict[str, Tensor]:
    """The weights of a model that a folder's config builds."""
    portable, weights = MODELS.build(config.model), model.state_dict()
    for name, value in portable.state_dict().items():
        if weights[name].shape == value.shape:  # an empty queue has another one
            value.copy_(weights[name])
    # A copy: safetensors refuses tensors that share memory, as tied weights do.
    return {
        name: value.to(dtype if dtype and value.is_floating_point() else value.dtype, copy=True)
        for name, value in portable.state_dict().items()
    }


def _make_portable(section: dict, model: nn.Module, folder: Path, copied: dict[str, Path]) -> None:
    """Changes the config of a model so that it needs no file outside of a folder."""
    if isinstance(model, MomentumModel):
        parameters, _ = accepted_parameters(type(model))
        section.update({key: value for key, value in _TRAINING.items() if key in parameters})
    preprocessor = section.get('data_preprocessor', {})
    if 'pretrained' in preprocessor.get('tokenizer', {}):
        tokenizer, key = preprocessor.tokenizer, 'data_preprocessor.tokenizer.pretrained'
        source = Path(find_weights(tokenizer.pretrained, key))
        if source.is_file():
            tokenizer.pretrained = str(source)  # copied below
        else:
            model.data_preprocessor.tokenizer.save_pretrained(folder)
            tokenizer.pretrained = HERE
    for _, part in sections(section):
        if part is not preprocessor.get('tokenizer'):
            for key in _START:
                part.pop(key, None)
        _copy_files(part, folder, copied)
    text = section.get('backbone', section).get('text_encoder', {})
    if isinstance(text.get('config'), str):
        encoder = getattr(model, 'backbone', model).text_encoder
        given, known = json.loads(encoder.config.to_json_string()), type(encoder.config)().to_dict()
        # Files of older versions of transformers have keys that nobody reads any more.
        text.config = {k: v for k, v in given.items() if known.get(k, v) != v or k == 'model_type'}


def _copy_extractors(section: dict, folder: Path, copied: dict[str, Path]) -> None:
    """Copies the weights of the extractors of regions in the config of a loader."""
    for _, part in sections(section):
        for _, extractor in sections(part.get('extractor') or {}):
            _copy_files(extractor, folder, copied)


def _copy_files(part: dict, folder: Path, copied: dict[str, Path]) -> None:
    """Copies the files that a part of a config names, and names the copies."""
    for key, value in part.items():
        if isinstance(value, str) and Path(value).is_file():
            part[key] = f'{HERE}/{_copy_into(folder, Path(value), copied)}'


def _copy_into(folder: Path, file: Path, copied: dict[str, Path]) -> str:
    """Copies a file, and returns its name there: a new one where ``copied`` has another file so."""
    names = [file.name, *(f'{file.stem}_{n}{file.suffix}' for n in range(2, len(copied) + 3))]
    name = next(
        name
        for name in names
        if name not in (CONFIG, WEIGHTS, CARD)
        and copied.get(name, file).resolve() == file.resolve()
    )
    if file.resolve() != (folder / name).resolve():  # a model may be saved where it is from
        shutil.copyfile(file, folder / name)
    copied[name] = file
    return name

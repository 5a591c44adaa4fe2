"""The weights of the answers' decoder, where a checkpoint has none."""

from torch import Tensor, nn

from xmodal.lora import to_plain_name


def fill_missing_decoder(
    model: nn.Module, state_dict: dict[str, Tensor], prefix: str = '', *_
) -> None:
    """Starts a decoder that ``state_dict`` lacks from the parts that it is copied from.

    It is a hook of :class:`AlbefVQA`.

    The teacher's starts from the teacher's parts, where ``state_dict`` has some, as in ALBEF.

    Raises:
        ValueError: when these have matrices of LoRA.
    """
    sources = model.decoder.SOURCES
    _copy_to_decoder(state_dict, prefix, sources)
    if model.teacher:  # it knows a head by its name alone
        names = {part: source.removeprefix('heads.') for part, source in sources.items()}
        _copy_to_decoder(state_dict, f'{prefix}teacher.module.', names)


def _copy_to_decoder(state_dict: dict[str, Tensor], prefix: str, sources: dict[str, str]) -> None:
    if any(name.startswith(f'{prefix}decoder.') for name in state_dict):
        return
    for part, source in sources.items():
        for name in [name for name in state_dict if name.startswith(prefix + source)]:
            rest = to_plain_name(name).removeprefix(prefix + source)
            state_dict[f'{prefix}decoder.{part}{rest}'] = state_dict[name]

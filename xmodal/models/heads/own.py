"""Heads of one's own, beside those that a pre-trainer knows by their names."""

from collections.abc import Collection, Mapping

from torch import Tensor, nn

from xmodal.registry import MODELS


def check_own_heads(heads: Mapping[str, dict], places: Collection[str]) -> None:
    """Looks at the configs of heads that stand in none of a pre-trainer's places.

    Raises:
        ValueError: when one has no ``step_loss``, and so belongs in a place.
    """
    for name, head in heads.items():
        kind = MODELS.get(head['type']) if isinstance(head['type'], str) else head['type']
        if name not in places and kind and not hasattr(kind, 'step_loss'):
            raise ValueError(
                f'model.heads.{name}: {kind.__name__} has no step_loss, by which a head of your '
                f'own is called; the names of the others are {", ".join(places)}'
            )


def own_losses(model: nn.Module, places: Collection[str], *step) -> dict[str, Tensor]:
    """What the active heads of one's own give, ``loss`` of the head ``name`` as ``loss_name``.

    Args:
        model: the pre-trainer, handed to ``step_loss`` first.
        places: names of the heads that are not one's own.
        *step: what the pre-trainer knows of this step.
    """
    return {
        f'{key}_{name}': value
        for name, head in model.heads.items()
        if name in model.active_heads and name not in places
        for key, value in head.step_loss(model, *step).items()
    }

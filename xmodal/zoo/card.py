"""The model card of a folder: what it is, what it can do, where it comes from."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmengine.config import Config
from torch import nn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATE = """\
---
library_name: xmodal
{license}tags: [cross-modal, image-text, {kind}]
---
# {title}

{description}

```python
import xmodal

model = xmodal.Inferencer('{name}')
{example}```

A folder of xmodal: `config.py` builds the model and its preprocessing, `model.safetensors` has its
weights ({parameters:.1f} M parameters, those of its heads included).
"""
_EXAMPLE = "model.similarity(['a.png', 'b.png'], ['a red ring above a blue disc'])\n"


def write_card(
    file: Path,
    config: Config,
    model: nn.Module,
    title: str | None = None,
    description: str | None = None,
    license: str | None = None,
    metrics: Mapping[str, float] | None = None,
    provenance: Sequence[str] = (),
    figures: 'Mapping[str, Figure] | None' = None,
) -> None:
    """Writes a model card, ``README.md``, with the head that the hub reads, and its figures.

    Args:
        file: where to.
        config: of the model.
        model: the model, whose parameters are counted.
        title: default: the name of the folder.
        description: a sentence or more.
        license: of the weights, by the hub's names; None says nothing.
        metrics: of a test, by name.
        provenance: how the weights were made, a line each: commit, commands, data.
        figures: by title; each becomes a PNG beside the card.
    """
    kind = config.model.type
    text = _TEMPLATE.format(
        license=f'license: {license}\n' if license else '',
        kind=kind,
        title=title or file.parent.name,
        description=description or f'A trained `{kind}`.',
        name=title or file.parent,
        example=_EXAMPLE if hasattr(model, 'encode_image') else '',
        parameters=sum(parameter.numel() for parameter in model.parameters()) / 1e6,
    )
    if provenance:
        text += '\n## Where it comes from\n\n' + ''.join(f'* {line}\n' for line in provenance)
    if metrics:
        text += '\n## Results\n\n| metric | value |\n|---|---|\n'
        text += ''.join(f'| {name} | {value:.4g} |\n' for name, value in metrics.items())
    for heading, figure in (figures or {}).items():
        image = file.with_name(f'{heading.lower()}.png')
        figure.savefig(image, dpi=120)
        text += f'\n## {heading}\n\n![{heading}]({image.name})\n'
    file.write_text(text, encoding='utf-8')

"""What a converter makes of a file."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from torch import Tensor, nn

from xmodal.checkpoint_file import write_checkpoint
from xmodal.engine.launch import read_config
from xmodal.registry import MODELS, register_all


class Converted(NamedTuple):
    """Weights for a model, and what a user should know of them.

    Attributes:
        state_dict: the weights, by the names of the model.
        reports: names of weights, by what became of them.
        description: what kind of file it was, if its converter tells.
    """

    state_dict: dict[str, Tensor]
    reports: dict[str, list[str]] = {}
    description: str = ''

    def write(self, out: Path, source: Path) -> None:
        """Writes a checkpoint that names the file it was made of."""
        write_checkpoint(out, {'state_dict': self.state_dict, 'meta': {'source': source.name}})

    def report(self, out: Path, source: Path) -> str:
        """What the files are, and the reports, a name a line."""
        lines = [f'{source}: {self.description}'] if self.description else []
        lines.append(f'{out}: {len(self.state_dict)} tensors')
        for title, names in self.reports.items():
            lines += [f'{title}: {len(names)}', *(f'  {name}' for name in names)]
        return '\n'.join(lines)


def convert_for_config(
    convert_file: Callable[[Path, nn.Module], Converted], source: Path, out: Path, config: str
) -> None:
    """Converts a file for the model of a config, writes the checkpoint and prints the report."""
    register_all()
    converted = convert_file(source, MODELS.build(read_config(config, 'model').model))
    converted.write(out, source)
    print(converted.report(out, source))

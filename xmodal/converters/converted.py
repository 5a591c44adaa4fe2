"""What a converter makes of a file."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from xmodal.checkpoint_file import write_checkpoint


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

    def report(self) -> str:
        """The reports, a name a line."""
        lines = []
        for title, names in self.reports.items():
            lines += [f'{title}: {len(names)}', *(f'  {name}' for name in names)]
        return '\n'.join(lines)

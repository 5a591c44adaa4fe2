"""Tables of a paper as declarations: running them, and printing them with the paper's figures."""

from xmodal.ablation.commands import Commands
from xmodal.ablation.declaration import find_table, read_table
from xmodal.ablation.plan import Plan
from xmodal.ablation.report import grid, print_grid, to_markdown
from xmodal.ablation.requirements import missing_by_stage, missing_gpus
from xmodal.ablation.row_config import row_config
from xmodal.ablation.runner import TableRunner
from xmodal.ablation.runs import Run
from xmodal.ablation.table import Row, Stage, Table

__all__ = [
    'Commands',
    'Plan',
    'Row',
    'Run',
    'Stage',
    'Table',
    'TableRunner',
    'find_table',
    'grid',
    'missing_by_stage',
    'missing_gpus',
    'print_grid',
    'read_table',
    'row_config',
    'to_markdown',
]

"""Tables of a paper as declarations: what to run, running it, and showing it beside the paper."""

from xmodal.ablation.report import grid, print_grid, to_markdown
from xmodal.ablation.runner import Commands, TableRunner
from xmodal.ablation.runs import Plan, Run
from xmodal.ablation.table import Table, read_table

__all__ = [
    'Commands',
    'Plan',
    'Run',
    'Table',
    'TableRunner',
    'grid',
    'print_grid',
    'read_table',
    'to_markdown',
]

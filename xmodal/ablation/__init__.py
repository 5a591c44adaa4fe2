"""Tables of a paper as declarations: running them, and printing them with the paper's figures."""

from xmodal.ablation.commands import Commands, list_commands
from xmodal.ablation.comparison import (
    Comparison,
    compare,
    comparisons_to_markdown,
    print_comparisons,
    reference_row,
)
from xmodal.ablation.declaration import find_table, read_table
from xmodal.ablation.plan import Plan
from xmodal.ablation.report import grid, print_grid, to_markdown
from xmodal.ablation.requirements import list_missing, missing_by_stage, missing_gpus
from xmodal.ablation.results import shared_results, unpacked_results
from xmodal.ablation.row_config import print_row_config, row_config
from xmodal.ablation.runner import TableRunner
from xmodal.ablation.runs import Run
from xmodal.ablation.sequential import SequentialRunner
from xmodal.ablation.table import Column, Row, Stage, Table
from xmodal.ablation.tournament import Tournament, print_tournament, read_cells

__all__ = [
    'Column',
    'Commands',
    'Comparison',
    'Plan',
    'Row',
    'Run',
    'SequentialRunner',
    'Stage',
    'Table',
    'TableRunner',
    'Tournament',
    'compare',
    'comparisons_to_markdown',
    'find_table',
    'grid',
    'list_commands',
    'list_missing',
    'missing_by_stage',
    'missing_gpus',
    'print_comparisons',
    'print_grid',
    'print_row_config',
    'print_tournament',
    'read_cells',
    'read_table',
    'reference_row',
    'row_config',
    'shared_results',
    'to_markdown',
    'unpacked_results',
]

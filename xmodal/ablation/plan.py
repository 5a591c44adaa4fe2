"""From a table to its runs: which stages of which rows, and what they share."""

from itertools import chain, groupby
from pathlib import Path

from xmodal.ablation.runs import RECORD, Run
from xmodal.ablation.table import Column, Row, Stage, Table


class Plan:
    """All runs of a table.

    Rows with equal configs share their runs if one of them is the reference, and so do the tables
    of a group.

    Args:
        table: the table.
        seeds: number of seeds, 0, 1, ….
        root: folder of all tables' runs.
        results: a folder like ``root`` (:func:`unpacked_results`): what it has of a run is read
            there; None for ``root`` itself.

    Attributes:
        runs: in the order of work: all rows with the first seed, then with the next.
    """

    def __init__(self, table: Table, seeds: int, root: Path, results: Path | None = None) -> None:
        self.table, self.seeds = table, seeds
        group = f'{table.group}_{table.preset}'
        self.root, self._results = Path(root, group), Path(results or root, group)
        self._by_folder: dict[Path, Run] = {}
        self._of_row: dict[tuple[str, str, int], Run] = {}
        self._names = {
            (row.name, stage.name): self._override_name(row, stage)
            for row in table.rows
            for stage in table.stages.values()
        }
        for seed in range(seeds):
            for row in table.rows:
                for stage in table.stages.values():
                    self._of_row[row.name, stage.name, seed] = self._run(row, stage, seed)
        for column in table.columns:
            for row in table.rows:
                for run in self.runs_of(row, column):
                    run.is_tested = True

    @property
    def runs(self) -> list[Run]:
        """Each run once."""
        return list(self._by_folder.values())

    def run_of(self, row: Row, stage: str, seed: int) -> Run:
        """The run of a stage of a row."""
        return self._of_row[row.name, stage, seed]

    def runs_of(self, row: Row, column: Column) -> list[Run]:
        """The runs that a cell shows, one for each seed."""
        return [self.run_of(row, column.stage, seed) for seed in range(self.seeds)]

    def _run(self, row: Row, stage: Stage, seed: int) -> Run:
        stages = self.table.stages
        source = self._run(row, stages[stage.after], seed) if stage.after else None
        parts = [self._run(row, stages[name], seed) for name in stage.ensemble]
        names = [self._names[row.name, step.name] for step in self._steps(stage)]
        overrides = '-to-'.join(name for name, _ in groupby(names))
        path = Path(overrides, f'seed_{seed}', stage.name)
        folder, options = self.root / path, row.options(stage)
        if folder not in self._by_folder:
            run = Run(stage, options, seed, folder, source, parts)
            if (self._results / path / RECORD).is_file():
                run.results = self._results / path
            self._by_folder[folder] = run
        run = self._by_folder[folder]
        rests_on_same = run.source is source and run.parts == parts
        if not rests_on_same or not run.has_options(options):
            kind = 'change stage' if rests_on_same else 'start before stage'
            raise ValueError(
                f"row '{row.name}' and another one {kind} {stage.name} differently, and both "
                f'changes have the name {overrides}: give one of them in a row of its own'
            )
        return run

    def _steps(self, stage: Stage) -> list[Stage]:
        """All stages that it rests on, in order of work, and itself."""
        parts = [self._steps(self.table.stages[name]) for name in stage.ensemble]
        return [*chain.from_iterable(parts), *self.table.chain(stage.name)]

    def _override_name(self, row: Row, stage: Stage) -> str:
        """The row's override, or the reference's where both give equal configs in all the chain."""
        reference, override = self.table.reference, row.overrides[stage.name]
        if reference is None or override.name == reference.name:
            return override.name
        is_reference = all(
            step.are_equal(row.options(step), reference.options(step))
            for step in self._steps(stage)
        )
        return reference.name if is_reference else override.name

"""How long a plan still takes."""

from statistics import mean

from xmodal.ablation.runs import Run


def usual_seconds(runs: list[Run]) -> dict[tuple[str, str], float]:
    """The mean time of the finished steps, by stage and step ('train', 'test')."""
    known: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        times = run.seconds()
        done = {'train': not run.lacks_training, 'test': not run.lacks_test}
        for step in times.keys() & {step for step in done if done[step]}:
            known.setdefault((run.stage.name, step), []).append(times[step])
    return {key: mean(times) for key, times in known.items()}


def remaining_seconds(runs: list[Run], usual: dict[tuple[str, str], float] | None = None) -> float:
    """How long one process still needs; NaN when nothing is known.

    Args:
        runs: of a plan.
        usual: of :func:`usual_seconds`; None takes that of the runs. A step that it lacks counts as
            the mean of all.
    """
    usual = usual_seconds(runs) if usual is None else usual
    if not usual:
        return float('nan')
    left = 0.0
    for run in runs:
        if run.lacks_training:
            left += usual.get((run.stage.name, 'train'), mean(usual.values()))
        if run.lacks_test:
            left += usual.get((run.stage.name, 'test'), mean(usual.values()))
    return left


def format_duration(seconds: float) -> str:
    """In hours and minutes."""
    minutes = round(seconds / 60)
    return f'{minutes // 60} h {minutes % 60:02d} min' if minutes >= 60 else f'{minutes} min'

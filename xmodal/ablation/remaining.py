"""How long a plan still takes."""

from statistics import mean

from xmodal.ablation.runs import Run


def remaining_seconds(runs: list[Run]) -> float:
    """How long one process still needs, by the mean of the finished steps; NaN without any.

    A step that was never finished counts as the mean of all that were.
    """
    known: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        times = run.seconds()
        done = {'train': run.is_trained, 'test': not run.lacks_test}
        for step in times.keys() & {step for step in done if done[step]}:
            known.setdefault((run.stage.name, step), []).append(times[step])
    if not known:
        return float('nan')
    usual = {key: mean(times) for key, times in known.items()}
    left = 0.0
    for run in runs:
        if not run.is_trained:
            left += usual.get((run.stage.name, 'train'), mean(usual.values()))
        if run.lacks_test:
            left += usual.get((run.stage.name, 'test'), mean(usual.values()))
    return left


def format_duration(seconds: float) -> str:
    """In hours and minutes."""
    minutes = round(seconds / 60)
    return f'{minutes // 60} h {minutes % 60:02d} min' if minutes >= 60 else f'{minutes} min'

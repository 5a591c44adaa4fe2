"""Predicted answers, written to data samples."""

from math import isfinite

from xmodal.structures import DataSample


def set_answers(
    samples: list[DataSample], answers: list[list[tuple[str, float]]]
) -> list[DataSample]:
    """Sets ``predicted`` and ``top_answers``: the best first, each with its probability.

    Raises:
        ValueError: when a probability is not finite, of which any answer could come out.
    """
    if not all(isfinite(probability) for best in answers for _, probability in best):
        raise ValueError(
            'probabilities of answers are not finite: the weights of the model hold NaN or inf'
        )
    for sample, top_answers in zip(samples, answers, strict=True):
        sample.predicted = top_answers[0][0]
        sample.top_answers = top_answers
    return samples

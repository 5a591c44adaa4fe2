"""Samples of a classification."""

from xmodal.structures import DataSample


def labelled(labels):
    """A sample with each label."""
    samples = [DataSample() for _ in labels]
    for sample, label in zip(samples, labels, strict=True):
        sample.label = label
    return samples

"""What the benches make of jobs that take turns."""

import statistics


def ratio(ours, rival):
    """The median of the ratios of the rounds: what slows a machine down for a while slows down both."""
    return statistics.median(a / b for a, b in zip(ours, rival, strict=True))

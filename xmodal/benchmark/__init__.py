"""What the benchmarks of tools/analysis share.

Variants that are compared take turns, one call each in every round, so that a drift of the
machine's speed affects all of them alike. A ratio is the median of the ratios of the rounds.
"""

from xmodal.benchmark.memory import peak_memory_of, proportional_memory
from xmodal.benchmark.script import (
    add_compile,
    add_device,
    default_device,
    describe_device,
    make_parser,
    make_table,
    write_placeholder_vocabulary,
    write_placeholder_words,
)
from xmodal.benchmark.timing import (
    WARM_UP,
    alternate,
    cpu_seconds_of,
    matmul_rate,
    median_ratio,
    ratios_by_round,
    seconds_of,
    synchronize,
    timed,
)
from xmodal.benchmark.workers import (
    TrainingStep,
    Worker,
    call_alone,
    close_and_measure,
    compile_together,
)

__all__ = [
    'WARM_UP',
    'TrainingStep',
    'Worker',
    'add_compile',
    'add_device',
    'alternate',
    'call_alone',
    'close_and_measure',
    'compile_together',
    'cpu_seconds_of',
    'default_device',
    'describe_device',
    'make_parser',
    'make_table',
    'matmul_rate',
    'median_ratio',
    'peak_memory_of',
    'proportional_memory',
    'ratios_by_round',
    'seconds_of',
    'synchronize',
    'timed',
    'write_placeholder_vocabulary',
    'write_placeholder_words',
]

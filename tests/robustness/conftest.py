"""What the trials share."""

import tempfile

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from robustness.table import COUNTS
from trials import Trials

# Reproducible: the same examples in every run, and nothing is kept in the checkout.
set_hypothesis_home_dir(tempfile.mkdtemp(prefix='hypothesis_'))
settings.register_profile(
    'trials',
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile('trials')


@pytest.fixture(scope='session')
def trials(request):
    """Runs and counts trials; the session ends with their table."""
    return Trials(request.config.stash[COUNTS])

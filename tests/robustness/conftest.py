"""What the trials share."""

import tempfile
from functools import cache

import pytest
from damages import write
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir
from readers import make_folder
from robustness.table import COUNTS
from trials import Trials
from wrong_values import to_json, to_pickle

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


@pytest.fixture(scope='session')
def folders(tmp_path_factory):
    """A folder with the right files of a reader, whatever the trials before it have left there."""

    @cache
    def make_own(name):
        folder = tmp_path_factory.mktemp('reader')
        make_folder(folder)
        return folder

    def make(reader):
        folder = make_own(reader.name)
        for name, content in {**reader.others, reader.file: reader.content}.items():
            dump = to_pickle if name.endswith('.p') else to_json
            dump = reader.dump if name == reader.file else dump
            write(folder / name, dump(content))
        return folder

    return make

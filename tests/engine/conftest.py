"""What tests of several devices share."""

import pytest

from xmodal.datasets.shapes import WorldSpec, build_world


@pytest.fixture(scope='session')
def small_world(tmp_path_factory):
    """The embedded world with scenes for three batches of eight, at the size of the configs."""
    folder = tmp_path_factory.mktemp('shapes') / 'world'
    build_world(folder, WorldSpec(train=24, val=4, test=4, seed=1), workers=1)
    return folder

"""What setup.cfg cannot say: a wheel holds the configs and the tools, in ``xmodal/.mim``."""

from pathlib import Path
from shutil import copy, copytree, ignore_patterns, rmtree

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithConfigs(build_py):
    """Copies them where ``xmodal/packaged.py`` looks; an editable install uses the checkout's."""

    def run(self) -> None:
        if self.editable_mode:
            super().run()
            return
        rmtree(Path(self.build_lib, 'xmodal'), ignore_errors=True)  # modules that are gone by now
        super().run()
        target = Path(self.build_lib, 'xmodal', '.mim')
        for folder in ('configs', 'tools'):
            copytree(folder, target / folder, ignore=ignore_patterns('__pycache__'))
        copy('model-index.yml', target)


setup(cmdclass={'build_py': BuildWithConfigs})

"""What the log shows on the terminal. The log file has all of it."""

import logging

from mmengine.logging import MMLogger
from mmengine.logging.logger import MMFormatter

MAX_LINES = 10
_OF_MMENGINE = (  # its hook for checkpoints uses its own deprecated class, in every run
    '"FileClient" will be deprecated',
    '"HardDiskBackend" is the alias',
)


def shorten_on_terminal(logger: MMLogger) -> MMLogger:
    """Shows the first line of records longer than ``MAX_LINES``, such as the config.

    Errors and warnings are shown whole, as are all records if there is no log file.
    """
    terminal, *files = logger.handlers
    if files:
        terminal.setFormatter(_FirstLine(files[0].baseFilename))
    terminal.addFilter(lambda record: not str(record.msg).startswith(_OF_MMENGINE))
    return logger


class _FirstLine(MMFormatter):
    """Formats records as MMEngine does on a terminal, and long ones by their first line.

    Args:
        log_file: where the rest is.
    """

    def __init__(self, log_file: str) -> None:
        super().__init__(color=True, datefmt='%m/%d %H:%M:%S')
        self._log_file = log_file

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record."""
        lines = super().format(record).splitlines()
        if len(lines) <= MAX_LINES or record.levelno > logging.INFO:
            return '\n'.join(lines)
        # MMEngine begins its environment with an empty line and a rule.
        first, *others = (line for line in lines if line.strip('- \n'))
        if first.endswith(' - '):
            first += others.pop(0)
        return f'{first} … {len(others)} more lines in {self._log_file}'

"""The terminal shows long records by their first line, and the log file has all of them."""

from io import StringIO

import pytest
from mmengine.logging import MMLogger

from xmodal.engine.terminal import MAX_LINES, shorten_on_terminal


@pytest.fixture
def new_logger(request):
    """Makes a shortened logger and what stands for its terminal."""

    def new(**options) -> tuple[MMLogger, StringIO]:
        logger, terminal = MMLogger(request.node.name, **options), StringIO()
        logger.handlers[0].stream = terminal
        return shorten_on_terminal(logger), terminal

    return new


@pytest.fixture
def log_file(tmp_path):
    return tmp_path / 'run.log'


@pytest.fixture
def logged(new_logger, log_file):
    return new_logger(log_file=str(log_file))


def numbered(number: int) -> list[str]:
    return [f'    entry {i}' for i in range(number)]


def test_a_long_record_is_its_first_line_and_where_the_rest_is(logged, log_file):
    logger, terminal = logged
    logger.info('\n'.join(['Config:', *numbered(MAX_LINES)]))
    (shown,) = terminal.getvalue().splitlines()
    assert shown.endswith(f' - Config: … {MAX_LINES} more lines in {log_file}')
    assert log_file.read_text().splitlines()[1:] == numbered(MAX_LINES)


def test_rules_and_empty_lines_are_not_the_first_line(logged):
    logger, terminal = logged
    rule = '-' * 60
    logger.info('\n'.join(['', rule, 'System environment:', *numbered(MAX_LINES), rule, '']))
    (shown,) = terminal.getvalue().splitlines()
    assert f' - System environment: … {MAX_LINES} more lines in' in shown


@pytest.mark.parametrize('level', ['warning', 'error'])
def test_warnings_and_errors_are_whole(logged, level):
    logger, terminal = logged
    getattr(logger, level)('\n'.join(['These keys are unknown:', *numbered(3 * MAX_LINES)]))
    assert terminal.getvalue().splitlines()[1:] == numbered(3 * MAX_LINES)


def test_short_records_are_as_mmengine_has_them(logged, log_file):
    logger, terminal = logged
    text = 'Epoch(train) [1][ 50/125]  loss: 3.9904\nand a second line'
    logger.info(text)
    assert text in terminal.getvalue()
    assert text in log_file.read_text()


def test_without_a_file_all_is_shown(new_logger):
    logger, terminal = new_logger()
    logger.info('\n'.join(['Config:', *numbered(3 * MAX_LINES)]))
    assert terminal.getvalue().splitlines()[1:] == numbered(3 * MAX_LINES)


def test_what_mmengine_says_of_its_own_class_is_in_the_file_alone(logged, log_file):
    logger, terminal = logged
    logger.warning('"FileClient" will be deprecated in future.')
    assert not terminal.getvalue()
    assert 'FileClient' in log_file.read_text()

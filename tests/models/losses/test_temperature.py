"""The learned temperature, which learns log T or log 1 / T."""

import math

import pytest
import torch

from xmodal.models.losses import LearnedTemperature

MINIMUM, MAXIMUM = 0.001, 0.5


@pytest.fixture(params=[False, True], ids=['log T', 'log 1/T'])
def inverse(request):
    return request.param


@pytest.mark.parametrize(('start', 'bounded'), [(5.0, 0.5), (1e-6, 0.001), (0.07, 0.07)])
def test_it_stays_within_its_bounds_and_its_parameter_is_not_written_to(start, bounded, inverse):
    temperature = LearnedTemperature(start, MINIMUM, MAXIMUM, inverse)
    assert temperature().item() == pytest.approx(bounded)
    # A compiled step computes it again in the backward pass.
    sign = -1 if inverse else 1
    assert temperature.log.item() == pytest.approx(sign * math.log(start))


def test_similarities_are_divided_by_it(inverse):
    similarity = torch.randn(3, 4)
    logits = LearnedTemperature(0.07, MINIMUM, MAXIMUM, inverse).scale(similarity)
    torch.testing.assert_close(logits, similarity / 0.07)


def test_its_gradient_is_that_of_the_logarithm(inverse):
    temperature = LearnedTemperature(0.07, MINIMUM, MAXIMUM, inverse)
    temperature().backward()
    expected = -0.07 if inverse else 0.07  # dT / d log T = T
    assert temperature.log.grad.item() == pytest.approx(expected)


@pytest.mark.parametrize('bound', [MINIMUM, MAXIMUM])
def test_at_a_bound_only_a_gradient_that_leads_back_inside_passes(bound, inverse):
    temperature = LearnedTemperature(bound, MINIMUM, MAXIMUM, inverse)
    outwards = -1 if bound == MAXIMUM else 1  # a descent along it raises or lowers T
    (outwards * temperature().log()).backward()
    assert temperature.log.grad == 0
    (-outwards * temperature().log()).backward()
    assert temperature.log.grad != 0
    before = temperature().item()
    with torch.no_grad():
        temperature.log -= 0.1 * temperature.log.grad
    assert MINIMUM < temperature().item() < MAXIMUM
    assert abs(math.log(temperature().item() / before)) == pytest.approx(0.1, abs=1e-5)


@pytest.mark.parametrize('bound', [MINIMUM, MAXIMUM])
def test_a_temperature_that_was_pushed_beyond_its_bound_comes_back(bound, inverse):
    temperature = LearnedTemperature(bound, MINIMUM, MAXIMUM, inverse)
    for direction in (-1, 1):  # two steps outwards, and two back inside
        for _ in range(2):
            slope = math.copysign(1, math.log(bound / 0.1)) * direction
            (slope * temperature().log()).backward()
            with torch.no_grad():
                temperature.log -= 0.2 * temperature.log.grad
            temperature.log.grad = None
    assert abs(math.log(temperature().item() / bound)) == pytest.approx(0.4, abs=1e-5)

"""What several audits plant."""

from fractions import Fraction

import pytest

from sidelight.privacy.unit import Unit


class Halved(Unit):
    """The planted bug: half the sensitivity, so half the noise."""

    @property
    def l1(self):
        return Fraction(super().l1, 2)

    @property
    def l2_squared(self):
        return Fraction(super().l2_squared, 4)


@pytest.fixture(scope="session")
def halved() -> type[Unit]:
    return Halved

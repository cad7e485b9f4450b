"""A small table with relations of its own, to lie about."""

import numpy as np

from sidelight.data.domain import Domain
from sidelight.data.table import Table

DOMAIN = Domain.of({"age": 8, "sex": 2, "school": 5, "work": 6, "income": 10, "home": 4, "car": 3})


def drawn(records: int, *, seed: int) -> Table:
    """Records of one fixed population: attributes follow from others, with some chance."""
    rng = np.random.default_rng(seed)
    age = rng.choice(8, records, p=np.array([8, 10, 13, 14, 15, 16, 14, 10]) / 100)
    sex = rng.integers(0, 2, records)
    school = _near(np.where(age < 2, age, 4 - age // 3), 5, rng)
    work = _near((school + 2 * sex + (age > 5) * 3) % 6, 6, rng)
    income = _near(np.clip(school + work + (age > 2), 0, 9), 10, rng)
    home = _near(np.clip(income // 3 + (age > 4), 0, 3), 4, rng)
    car = _near((home + sex * (income > 4)) % 3, 3, rng)
    return Table.of_codes(DOMAIN, np.stack([age, sex, school, work, income, home, car], axis=1))


def _near(values: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """These values, but for three in ten: a step beside, or anywhere."""
    chance = rng.random(len(values))
    beside = np.clip(values + rng.choice([-1, 1], len(values)), 0, size - 1)
    return np.where(chance < 0.7, values, np.where(chance < 0.9, beside, rng.integers(0, size, len(values))))


PRIVATE, PUBLIC = drawn(20_000, seed=1), drawn(3_000, seed=2)
OTHER = Table.of_codes(Domain.of({"x": 7, "y": 2}), np.stack([np.arange(900) % 7, np.arange(900) % 2], 1))
"""The people whose data are private, others of the same town, and a table about something else."""

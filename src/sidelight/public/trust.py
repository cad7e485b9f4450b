"""Several public tables: how much each counts, decided by noisy answers and not by hand.

    π ← argmax  Σ_k π⁰_k ln π_k · m⁰ − ½ Σ_a ‖y_a − n Σ_k π_k u_ka‖² / (σ_a² + n/m_a)      on the simplex

u_ka is table k on attribute a, y_a the noisy one-way marginals, π⁰_k the table's share of all public
records. The first term is worth one pseudo-record a table: it decides only where the noise says nothing.
Exponentiated gradient ascent; deterministic.

PRIVACY: a function of public data and of noisy answers; post-processing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sidelight.data.domain import Attrs
from sidelight.measurement import Measurement
from sidelight.public.source import PublicRecords, records_telling

Array = NDArray[np.float64]

_STEPS = 2000


def trusted(public: PublicRecords, measurements: Sequence[Measurement], *, total: float) -> PublicRecords:
    """The same sources, each with the weight that the noisy answers give it."""
    pseudo = np.array(public.weights) * len(public.sources)
    curve = np.zeros((len(pseudo), len(pseudo)))
    slope = np.zeros(len(pseudo))
    for measurement in measurements:
        attrs = measurement.query.attrs
        holders = [k for k, source in enumerate(public.sources) if records_telling(source, attrs)]
        if len(holders) < 2:
            continue
        tables = np.stack([_share(public, k, attrs) for k in holders]) * total
        # A table's own sampling error blurs the comparison, as the noise does.
        fewest = min(records_telling(public.sources[k], attrs) for k in holders)
        variance = measurement.stddev**2 + total**2 / (fewest * tables.shape[1])
        curve[np.ix_(holders, holders)] += tables @ tables.T / variance
        slope[holders] += tables @ measurement.answer / variance
    weights = np.array(public.weights)
    step = 1.0 / (np.abs(curve).max() + pseudo.sum())
    for _ in range(_STEPS):
        gradient = slope - curve @ weights + pseudo / np.maximum(weights, 1e-12)
        move = step * (gradient - weights @ gradient)
        weights = weights * np.exp(np.clip(move, -1.0, 1.0))
        weights /= weights.sum()
    return PublicRecords.of(public.domain, public.sources, weights=weights.tolist())


def _share(public: PublicRecords, index: int, attrs: Attrs) -> Array:
    counts = np.asarray(public.sources[index].count_many([attrs])[0], dtype=np.float64)
    return np.asarray(counts.reshape(-1) / counts.sum())

"""Random commands, damaged files and hostile folders: exit codes, sentences, ledgers, and nothing private.

By hand, with more cases: ``make fuzz N=50000 SEED=7``.
"""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from fuzz import fuzz

SEED = 2026
QUICK = 500


def test_whatever_a_command_is_given_it_ends_well():
    findings = fuzz(QUICK, SEED)

    assert findings.faults == []
    assert findings.cases == QUICK
    # A fuzzer whose commands are all refused at the door would find little behind it.
    assert findings.codes["0"] > 0.3 * QUICK
    assert findings.codes["2"] > 0.3 * QUICK


@pytest.mark.slow
def test_whatever_five_thousand_commands_are_given_they_end_well():
    findings = fuzz(5000, SEED + 1)

    assert findings.faults == []
    assert findings.cases == 5000
    assert findings.codes["3"] > 0

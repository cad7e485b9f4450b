"""Our AIM or MST, run as the peers are: ``ours.py folder epsilon delta limit_mb seed aim``.

Reads ``codes.npy`` and ``domain.json`` from the folder, writes ``records.npy`` and ``seconds.json`` there.
A person counts as one record added or removed, as with the peers.
"""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from experiment import curator_of
from sidelight.data.domain import Domain
from sidelight.data.table import Table
from sidelight.mechanisms.registry import mechanism_of
from sidelight.privacy.budget import Budget
from sidelight.privacy.unit import Unit
from sidelight.queries.workload import Workload

folder, (epsilon, delta, limit_mb) = Path(sys.argv[1]), map(float, sys.argv[2:5])
seed, name = int(sys.argv[5]), sys.argv[6]
domain = Domain.of(json.loads((folder / "domain.json").read_text(encoding="utf-8")))
private = Table.of_codes(domain, np.load(folder / "codes.npy"))

began = time.process_time()
budget = Budget(epsilon=epsilon, delta=delta).rho()
curator = curator_of(private, budget, seed=seed, unit=Unit("add-or-remove"))
mechanism = mechanism_of(name, {"max_model_mb": limit_mb})
release = mechanism.run(curator, Workload.marginals(domain, degree=3))
fitted = time.process_time()
records = release.model.sample(private.records, seed=seed)
drawn = time.process_time()

np.save(folder / "records.npy", np.asarray(records.codes(), dtype=np.int64))
(folder / "seconds.json").write_text(json.dumps({"fit": fitted - began, "sample": drawn - fitted}))

"""AIM of dpmm, run in an environment of its own: ``aim_dpmm.py folder epsilon delta limit_mb``.

Reads ``codes.npy`` and ``domain.json`` from the folder, writes ``records.npy`` and ``seconds.json`` there.
The workload is all 3-way marginals, whatever their size; domains are given and not compressed, and no
budget goes into binning. A person counts as one record added or removed.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.pipelines.aim import AIMPipeline

folder, (epsilon, delta, limit_mb) = Path(sys.argv[1]), map(float, sys.argv[2:5])
sizes = json.loads((folder / "domain.json").read_text())
private = pd.DataFrame(np.load(folder / "codes.npy"), columns=list(sizes))

began = time.process_time()
pipeline = AIMPipeline(
    epsilon=epsilon,
    delta=delta,
    compress=False,
    max_model_size=limit_mb,
    n_jobs=1,
    gen_kwargs={"degree": 3, "max_cells": 10**12},
    disable_processing=True,
)
pipeline.fit(private, domain=sizes, random_state=0)
fitted = time.process_time()
records = pipeline.generate(n_records=len(private), random_state=0)
drawn = time.process_time()

np.save(folder / "records.npy", records[list(sizes)].to_numpy(dtype=np.int64))
(folder / "seconds.json").write_text(json.dumps({"fit": fitted - began, "sample": drawn - fitted}))

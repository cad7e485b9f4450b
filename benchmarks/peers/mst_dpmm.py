"""MST of dpmm, run in an environment of its own: ``mst_dpmm.py folder epsilon delta limit_mb seed``.

Reads ``codes.npy`` and ``domain.json`` from the folder, writes ``records.npy`` and ``seconds.json`` there.
Domains are given, rare values are merged, and no budget goes into binning. A person counts as one record
added or removed.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.pipelines.mst import MSTPipeline

folder, (epsilon, delta, limit_mb) = Path(sys.argv[1]), map(float, sys.argv[2:5])
seed = int(sys.argv[5])
sizes = json.loads((folder / "domain.json").read_text())
private = pd.DataFrame(np.load(folder / "codes.npy"), columns=list(sizes))

began = time.process_time()
pipeline = MSTPipeline(
    epsilon=epsilon, delta=delta, compress=True, max_model_size=limit_mb, n_jobs=1, disable_processing=True
)
pipeline.fit(private, domain=sizes, random_state=seed)
fitted = time.process_time()
records = pipeline.generate(n_records=len(private), random_state=seed)
drawn = time.process_time()

np.save(folder / "records.npy", records[list(sizes)].to_numpy(dtype=np.int64))
(folder / "seconds.json").write_text(json.dumps({"fit": fitted - began, "sample": drawn - fitted}))

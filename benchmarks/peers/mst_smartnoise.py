"""MST of smartnoise-synth, run as the other peers: ``mst_smartnoise.py folder epsilon delta limit_mb seed``.

Reads ``codes.npy`` and ``domain.json`` from the folder, writes ``records.npy`` and ``seconds.json`` there.
The synthesizer learns from the private table which values there are and how many records, and counts a
person as one record added or removed.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from snsynth.mst.mst import MSTSynthesizer

folder, (epsilon, delta, limit_mb) = Path(sys.argv[1]), map(float, sys.argv[2:5])
np.random.seed(int(sys.argv[5]))  # noqa: NPY002  # what the synthesizer draws from
names = list(json.loads((folder / "domain.json").read_text()))
private = pd.DataFrame(np.load(folder / "codes.npy"), columns=names)

began = time.process_time()
synthesizer = MSTSynthesizer(epsilon=epsilon, delta=delta)
synthesizer.fit(private, categorical_columns=names)
fitted = time.process_time()
records = pd.DataFrame(synthesizer.sample(len(private)), columns=names)
drawn = time.process_time()

np.save(folder / "records.npy", records.to_numpy(dtype=np.int64))
(folder / "seconds.json").write_text(json.dumps({"fit": fitted - began, "sample": drawn - fitted}))

"""
Add a kind of input: time series
================================

Text, images, tables and prompts are built in. Another kind of input takes a single class. This example
explains a detector of pulses in a time series.
"""

# sphinx_gallery_thumbnail_path = 'pictures/time-series.png'

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path.cwd().parent / "examples"))
import time_series  # the example docs/examples/time_series.py registers the modality "time-series"

import pertinent

model = pertinent.wrap(time_series.pulse, kind="time-series", classes=["calm", "pulse"])
t = np.arange(120)
series = np.sin(t / 9) / 2 - 2 * np.exp(-(((t - 25) / 2) ** 2)) + 3 * np.exp(-(((t - 72) / 2) ** 2))
explanation = pertinent.explain(model, series, method="shapley-sampling", samples=50)
explanation.plot()

# %%
# Features are segments of the series. A removed segment is bridged by a straight line. Everything else
# works as for the other kinds: methods, metrics, reports, saved runs.

explanation

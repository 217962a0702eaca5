"""
Ask people which explanations help
==================================

Create a blinded study from saved explanations, collect answers on a web page, and analyse them.
"""

# sphinx_gallery_thumbnail_path = 'pictures/study.png'

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path.cwd().parent / "examples"))
import study  # the example docs/examples/study.py: 24 reviews, three methods, and simulated participants

# %%
# ``create_study`` turns explanations of the same texts by several methods into questions: mark the
# words, guess the prediction, rate an explanation, choose between two. Methods are balanced over
# participants and never named.

folder = tempfile.TemporaryDirectory()
design = study.make(Path(folder.name))
print(design)

# %%
# Serve it to real people with
#
# .. code-block:: bash
#
#     pertinent study serve FOLDER
#
# Here, simulated people answer. Their answers follow the words they know, with some noise.

study.simulate(design, design.cycle)

# %%
# The report compares methods with intervals over participants and inputs, and says how far people agree:

import pertinent

report = pertinent.report_study(design)
report

# %%

report.plot()

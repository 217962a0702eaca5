"""
Explain a table row, and a whole table
======================================

Explain one prediction of a regressor exactly, then look at the whole data set.
"""

# sphinx_gallery_thumbnail_path = 'pictures/beeswarm.png'

from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor

import pertinent

data = load_diabetes(as_frame=True, scaled=False)
forest = HistGradientBoostingRegressor(max_iter=80, random_state=0).fit(data.data, data.target)

# %%
# Columns are removed by replacing their values with those of other rows. Pass these rows as the
# background:

model = pertinent.wrap(forest, background=data.data[:100])
patient = data.data.iloc[0]
explanation = pertinent.explain(model, patient)
explanation

# %% The method ``shapley`` detected that the model consists of trees and walked through them. The values are
# exact, so there are no standard errors. They lead from the mean prediction of the background to the
# prediction for this patient:

explanation.plot_waterfall(top=6)

# %%
# Explain many rows to see the model as a whole. A bar is the mean magnitude of a column's score, with a 95%
# interval:

explanations = pertinent.explain(model, data.data[:200])
importance = explanations.importance(top=8)
importance.plot()

# %%
# A beeswarm shows every row. Points are coloured by the value of the column: a high body mass index
# raises the prediction.

importance.plot("beeswarm")

"""The descriptions and examples of ``--help``."""

from __future__ import annotations

EXIT_CODES = """\
exit codes:
  0    success
  1    some inputs failed or a file could not be written (listed on stderr); the rest is done
  2    bad usage, or nothing could be explained
  130  interrupted
"""

MAIN = """\
Finds and tests the features that a model's decision rests on: words of a text, parts of an image,
columns of a table row. Works offline on the embedded models 'sentiment', 'topics', 'digits',
'table' and 'diabetes', on a folder with a transformers classifier, or on a model or function in
a Python module of your own.

  pertinent demo                                  explain examples and write an HTML report
  pertinent explain "a slow start, then wonderful"
  pertinent compare "a slow start, then wonderful" --methods kernel-shap,lime
  pertinent explain --help                        each command has examples
"""

EXPLAIN = """\
Explain texts, images or table rows: score every feature by its effect on the model's decision, or
search for the few features that the decision rests on.

examples:
  pertinent explain "a slow start, then wonderful"
  pertinent explain "one text" "another text" --method parallel-local-search --sparsity .1,.2
  pertinent explain --file reviews.csv --column review --limit 50 --html report.html
  pertinent explain --image seven.png --features patches:2
  pertinent explain "the chip maker's shares rose" --model topics --by-class --html report.html
  pertinent explain --file wines.csv --model table --method shapley-sampling --set samples=25
  pertinent explain "some text" --model ./my-classifier --device cuda --dtype bfloat16 --out out.parquet
  pertinent explain --file rows.csv --model my_package.my_module:predict --id-column id
  pertinent explain "some text" --method ./my-explainer --set refine=5     what `pertinent fit` wrote

Each explanation is also measured: sufficiency (how much is lost with only the chosen features;
lower is better) and comprehensiveness (how much is lost without them; higher is better).
"""

COMPARE = """\
Explain the same inputs by several methods, measure them all, and show them side by side.

examples:
  pertinent compare "a slow start, then wonderful" --methods kernel-shap,lime,random
  pertinent compare --file reviews.txt --methods kernel-shap,parallel-local-search --budget 500
  pertinent compare --file reviews.jsonl --methods lime,shapley-sampling --set lime.samples=300 --show
  pertinent compare --file wines.csv --model table --methods kernel-shap,leave-one-out --html report.html
  pertinent compare "some text" --methods ./my-explainer,shapley --set ./my-explainer.refine=5
"""

EVALUATE = """\
Measure explanations that `pertinent explain --out FILE.parquet` wrote, with the model they explain.

examples:
  pertinent evaluate out.parquet
  pertinent evaluate out.parquet --model topics --metrics insertion,deletion,faithfulness:k=5
  pertinent evaluate out.parquet --removal mask-token --html report.html
"""

CHECK = """\
Find out which removal suits a model: remove random features of the inputs with every removal that
applies, using the same masks, and compare the accuracy that is left (Hase et al. 2021, Sec. 5). A removal
that costs more accuracy than another makes inputs that are out of distribution for the model, and
explanations based on them can mislead.

examples:
  pertinent check sentiment reviews.csv --label-column label
  pertinent check sentiment reviews.txt --limit 200 --plot check.png
  pertinent check ./my-classifier pairs.jsonl --removals attention-mask,mask-token --shares .5,.8
  pertinent check table wines.csv --json check.json

A few hundred inputs are needed to tell removals apart. Without --label-column, agreement with the
prediction for the whole input is measured instead of accuracy.
"""

STABILITY = """\
Find out how much explanations depend on the seed: explain the same inputs with several seeds, and measure
how well the explanations agree (Yang et al. 2023, Sec. 4): the rank correlation of their scores, the top
features they have in common, and the mean squared difference; also by the length of the inputs.

examples:
  pertinent stability --file reviews.txt --method kernel-shap --budget 200
  pertinent stability --file reviews.csv --method shapley-sampling --set samples=25 --plot stability.png
  pertinent stability --image seven.png --image three.png --method lime --features patches:2
  pertinent stability --file wines.csv --model table --method kernel-shap --seeds 10 --json stability.json

If the seeds disagree, raise --budget or the method's samples until they do not.
"""

SANITY = """\
Find out whether explanations depend on what the model has learned: explain the same inputs with the model
as it is and with its layers randomised, from the output down, and compare (Adebayo et al. 2018). A method
whose explanations hardly change explains the input or the architecture, not the model.

examples:
  pertinent sanity --file reviews.txt --method gradient-x-input --limit 50
  pertinent sanity --image seven.png --image three.png --method leave-one-out --layers last
  pertinent sanity --file reviews.txt --method kernel-shap --layers classifier,bert.pooler --json sanity.json
  pertinent sanity --file reviews.csv --model ./my-classifier --method lime --plot sanity.png

Only torch modules and transformers models have parameters to randomise. The model itself is not changed.
"""

ATTACK = """\
Find out how little must change for the model to decide otherwise: the smallest perturbation of some
features, and no others, that changes the prediction (Hsieh et al. 2021, Eqn. 1). Of images and table rows
the values are perturbed, of texts the embeddings of their words.

examples:
  pertinent attack "a slow start, then wonderful"
  pertinent attack "a slow start, then wonderful" --only slow --only wonderful,then
  pertinent attack --image seven.png --features pixels --norm linf --toward 1
  pertinent attack --image seven.png --features pixels --method greedy-as --set subsets=200 --top 40
  pertinent attack --file wines.csv --model table --only proline,flavanoids --json radii.json

A radius is the norm of the perturbation: of table rows in standard deviations of the columns. That no attack
was found does not prove that there is none.
"""

TRAIN = """\
Fine-tune a text classifier on labelled texts, so that its explanations show what it learned. Every
text is also used with most of its tokens removed (Hase et al. 2021, Sec. 4), so that the inputs that
explanation methods make are in distribution for the model. --standard trains on whole texts only.

examples:
  pertinent train sentiment reviews.csv --dev dev.csv --out my-sentiment
  pertinent train ./my-encoder pairs.jsonl --new-head --out my-classifier --epochs 10 --device cuda
  pertinent train topics news.parquet --out standard-topics --standard --label-column topic
  pertinent train sentiment reviews.csv --dev dev.csv --out my-sentiment --resume
  pertinent explain --model my-sentiment "a slow start, then wonderful"

DATA is .csv, .tsv, .jsonl or .parquet, with a text (or a pair, or a query and its document) and a
label in each record. A label is the name of a class or its number.
"""

FIT = """\
Fit an explainer to a model: a network that scores the features of an input in one pass. It learns the
scores of a slower method (amortized-shapley, Yang et al. 2023), the model's answers to random coalitions
(fastshap, Jethani et al. 2021), or by how much the loss grows without a feature (cxplain, Schwab & Karlen
2019); or it learns to select the features that a decision rests on: aim for every class (Vo et al. 2023),
magnex as few as are enough, l2x, vibi, invase; maple grows a forest of table rows. A few hundred to a few
thousand inputs are needed, like those that will be explained.

examples:
  pertinent fit --file reviews.csv --out my-explainer
  pertinent fit --file reviews.csv --column review --model ./my-classifier --out my-explainer --device cuda
  pertinent fit --file pairs.jsonl --model ./my-classifier --out my-explainer --classes all --set samples=50
  pertinent fit --file reviews.csv --out another --teacher-explanations my-explainer/teacher.parquet
  pertinent fit --file wines.csv --model table --out my-fastshap --method fastshap
  pertinent fit --file reviews.csv --out my-aim --method aim --set k=5
  pertinent explain "a slow start, then wonderful" --method ./my-explainer
  pertinent explain "a slow start, then wonderful" --method ./my-explainer --set refine=5

The same command continues a fit that was stopped. An explainer explains the model it was fitted to, with
the same --removal and --scale; that of amortized-shapley is more exact with --set refine=5, which adds 5
permutations of the input's features to the prediction.
"""

DEMO = """\
Explain four texts, one image and two table rows with the embedded models, offline; print the
explanations and write them to one self-contained HTML file.

examples:
  pertinent demo
  pertinent demo --html /tmp/report.html
  NO_COLOR=1 pertinent demo
"""

CATALOGUE = """\
List all {what}, each with its paper and its settings with their defaults.

examples:
  pertinent {what}
  pertinent {what} | less
  {use}
"""

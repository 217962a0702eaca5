"""Helpers of the tests of learned explainers."""

import json

from pertinent.learners.fitted_network import DIGEST, digest_of


def write_digest(folder):
    """Write the digest of the changed files in a fitted explainer's folder, so that they are read."""
    path = folder / "pertinent.json"
    card = json.loads(path.read_text())
    del card[DIGEST]
    path.write_text(json.dumps({**card, DIGEST: digest_of(folder, card)}))

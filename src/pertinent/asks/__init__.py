"""The questions that algorithms ask, one file per kind."""

from pertinent.asks.attack_radii import Attack, AttackRadii, Radii
from pertinent.asks.base import (
    Algorithm,
    Ask,
    Asking,
    BatchPart,
    Compute,
    Fork,
    Publish,
    Question,
    on_scale,
    relay,
)
from pertinent.asks.gradients import ActivationMaps, Gradients, MaskGradients, PathGradients
from pertinent.asks.network_outputs import Network, NetworkOutputs
from pertinent.asks.row_values import RowValues
from pertinent.asks.token_perplexity import TokenPerplexity
from pertinent.asks.tree_values import NotWalked, TreeScores, TreeValues
from pertinent.asks.values import RepeatedValues, Values

__all__ = [
    "ActivationMaps",
    "Algorithm",
    "Ask",
    "Asking",
    "Attack",
    "AttackRadii",
    "BatchPart",
    "Compute",
    "Fork",
    "Gradients",
    "MaskGradients",
    "Network",
    "NetworkOutputs",
    "NotWalked",
    "PathGradients",
    "Publish",
    "Question",
    "Radii",
    "RepeatedValues",
    "RowValues",
    "TokenPerplexity",
    "TreeScores",
    "TreeValues",
    "Values",
    "on_scale",
    "relay",
]

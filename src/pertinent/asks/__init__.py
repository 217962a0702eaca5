"""The questions an algorithm may ask, one file per kind."""

from pertinent.asks.attack_radii import Attack, AttackRadii, Radii
from pertinent.asks.base import (
    Algorithm,
    Arithmetic,
    Ask,
    Asking,
    Fork,
    Part,
    Partial,
    Question,
    on_scale,
    relay,
)
from pertinent.asks.gradients import ActivationMaps, Gradients, MaskGradients, PathGradients
from pertinent.asks.network_outputs import Network, NetworkOutputs
from pertinent.asks.row_values import RowValues
from pertinent.asks.surprises import Surprises
from pertinent.asks.tree_values import NotWalked, TreeScores, TreeValues
from pertinent.asks.values import RepeatedValues, Values

__all__ = [
    "ActivationMaps",
    "Algorithm",
    "Arithmetic",
    "Ask",
    "Asking",
    "Attack",
    "AttackRadii",
    "Fork",
    "Gradients",
    "MaskGradients",
    "Network",
    "NetworkOutputs",
    "NotWalked",
    "Part",
    "Partial",
    "PathGradients",
    "Question",
    "Radii",
    "RepeatedValues",
    "RowValues",
    "Surprises",
    "TreeScores",
    "TreeValues",
    "Values",
    "on_scale",
    "relay",
]

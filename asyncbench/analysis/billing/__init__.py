"""A results folder held against a provider's own account of what was used."""

from asyncbench.analysis.billing.comparing import Reconciled, reconcile

__all__ = ["Reconciled", "reconcile"]

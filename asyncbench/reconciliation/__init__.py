"""A results folder held against a provider's own account of what was used."""

from asyncbench.reconciliation.comparing import Reconciled, reconcile

__all__ = ["Reconciled", "reconcile"]

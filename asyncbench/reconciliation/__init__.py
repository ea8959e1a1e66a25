"""Compares a provider's bill with the cost that a results folder recorded.

In: a usage export, and a folder. Out: the difference for each model, with its likely causes.
"""

from asyncbench.reconciliation.comparing import Reconciled as Reconciled, reconcile as reconcile

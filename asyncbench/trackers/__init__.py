"""Trackers: the figures of a results folder, sent to MLflow, Weights & Biases or OpenTelemetry."""

PUBLIC = ("tracking",)

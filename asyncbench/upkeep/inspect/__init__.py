"""Logs of Inspect, written from a results folder."""

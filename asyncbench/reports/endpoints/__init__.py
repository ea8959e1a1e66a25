"""Endpoints: speed, errors and limits of the same models at several providers."""

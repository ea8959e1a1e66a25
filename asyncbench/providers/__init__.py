"""Providers: one call in, one reply or one ProviderError out. SDKs are imported only when used."""

from asyncbench.providers.provider import PROVIDERS, Provider

__all__ = ["PROVIDERS", "Provider"]

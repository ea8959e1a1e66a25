"""Google's application-default credentials, for Gemini and for Claude on Vertex."""

import os
from datetime import UTC
from typing import Final

import google.auth
from google.auth.compute_engine._metadata import detect_gce_residency_linux
from google.auth.credentials import Credentials
from google.auth.exceptions import DefaultCredentialsError, TransportError
from google.auth.transport.requests import Request as TokenRequest
from google.oauth2.credentials import Credentials as GivenToken

from asyncbench.providers.clouds import Chain, Login
from asyncbench.providers.token_servers import TokenSession

_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
_METADATA: Final = ("GCE_METADATA_HOST", "GCE_METADATA_ROOT", "GCE_METADATA_IP")


class NoProjectError(Exception):
    """Neither a variable nor the credentials name a project."""


class GoogleChain(Chain):
    """Google's application-default chain: a file, a login of yours, the account of a machine.

    Args:
        projects: variables that name the project, before the credentials do.
    """

    name = "Google's application-default chain"
    unreached = (TransportError,)

    def __init__(self, *projects: str) -> None:
        self._projects = projects
        self._session = TokenSession()

    def find(self) -> Login:
        """Look for credentials anew; they are given as a project and a token, which no SDK renews."""
        self._session.status = None
        request = TokenRequest(self._session)
        granted: Credentials
        granted, default_project = google.auth.default(scopes=[_SCOPE], request=request)
        project = next(filter(None, map(os.environ.get, self._projects)), default_project)
        if not project:
            raise NoProjectError(f"they name no project. Set {self._projects[-1]}")
        granted.refresh(request)  # type: ignore[no-untyped-call]  # its signature has none
        token = GivenToken(granted.token, quota_project_id=getattr(granted, "quota_project_id", None))  # type: ignore[no-untyped-call]  # nor has its own
        # Google's library has the time without a zone.
        ends_s = granted.expiry and granted.expiry.replace(tzinfo=UTC).timestamp()
        return Login(credentials=(project, token), secrets=(str(granted.token),), ends_s=ends_s)

    def is_down(self, error: Exception) -> bool:
        if isinstance(error, DefaultCredentialsError):
            # Google's library passes over a machine's metadata service that does not answer.
            on_google = detect_gce_residency_linux()  # type: ignore[no-untyped-call]  # its signature has none
            return bool(on_google) or any(map(os.environ.get, _METADATA))
        return super().is_down(error) or self._session.is_down

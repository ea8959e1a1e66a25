"""A new release of an SDK cannot add an error that nobody thought of."""

import anthropic
import openai
import pytest

from asyncbench.providers.error_kinds import BY_STATUS

SDKS = pytest.mark.parametrize("sdk", [openai, anthropic])

# The parents of all the others; what typed replies, helpers and other ways to sign in may raise.
OTHERS = {
    openai: """
        OpenAIError APIError APIResponseValidationError ContentFilterFinishReasonError
        InvalidWebhookSignatureError LengthFinishReasonError WebSocketConnectionClosedError
        WebSocketQueueFullError
    """,
    anthropic: """
        AnthropicError APIError APIResponseValidationError APIWebhookValidationError CredentialsError
        IdentityTokenFileError RetryableError
    """,
}


def errors_of(sdk):
    return {name: getattr(sdk, name) for name in sdk.__all__ if name.endswith("Error")}


@SDKS
def test_every_error_is_read_by_its_response_or_by_its_causes(sdk):
    families = (sdk.APIStatusError, sdk.APIConnectionError)

    others = {name for name, error in errors_of(sdk).items() if not issubclass(error, families)}

    assert others == set(OTHERS[sdk].split())


@SDKS
def test_every_status_with_a_class_of_its_own_has_its_row(sdk):
    statuses = {getattr(error, "status_code", None) for error in errors_of(sdk).values()} - {None}

    assert statuses
    assert statuses <= BY_STATUS.keys()

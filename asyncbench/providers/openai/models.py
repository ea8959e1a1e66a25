"""What is known of OpenAI's models before they are asked. Knows no SDK: `config` reads it."""

import re
from typing import Final

from asyncbench.providers.effort import effort_asked
from asyncbench.records import Model

# Models that reason refuse temperature (but for 1, the default) and top_p; from 5.1 on most take them with
# effort none. developers.openai.com (latest-model guides) and a table of what each model was seen to take
# (community.openai.com 1371738, January 2026).
_NEVER_SAMPLES: Final = re.compile(
    r"o\d(-.*)?"
    r"|gpt-5(-(mini|nano|pro|codex)(-.*)?|-\d.*)?"  # not gpt-5-chat-latest, which does not reason
    r"|gpt-5\.\d-(chat|codex|pro)(-.*)?"
)
_SAMPLES_WITHOUT_EFFORT: Final = re.compile(r"gpt-(5\.\d|[6-9](\.\d+)?)(-.*)?")


def openai_complaint(model: Model) -> str | None:
    """Return why requests to `model` cannot be made as the sweep wants them, and the way out.

    Of `params` only an effort counts: the rest is sent as given. Models of the simulator, which plays any,
    are not looked at.
    """
    if model.simulated or (model.temperature in (None, 1) and model.top_p is None):
        return None
    name = _name(model.model_id)
    if _NEVER_SAMPLES.fullmatch(name):
        return f"{model.model_id} takes no temperature and no top_p, as it always reasons: remove them"
    if effort_asked(model) != "none" and _SAMPLES_WITHOUT_EFFORT.fullmatch(name):
        return (
            f"{model.model_id} takes temperature and top_p only where it does not reason: "
            "remove them, or set `effort: none`"
        )
    return None


def _name(model_id: str) -> str:
    """Return the model itself: gpt-5 of openai/gpt-5 (a router's), gpt-5-mini of ft:gpt-5-mini:us::id."""
    return model_id.rsplit("/", 1)[-1].removeprefix("ft:").partition(":")[0]

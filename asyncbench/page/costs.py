"""The block `cost`: what accuracy costs."""

from typing import Any

from asyncbench.views import FolderViews

Values = dict[str, Any]  # Any: whatever JSON can hold


def cost_block(views: FolderViews) -> Values:  # noqa: ARG001  to come
    """Return what was spent, and who is as good for less."""
    return {}

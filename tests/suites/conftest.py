"""Properties hold on a busy machine too: their examples have no deadline."""

from hypothesis import settings

settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")

"""Logs of other tools as results folders: Inspect, lm-eval and promptfoo, and JSON Lines of any other."""

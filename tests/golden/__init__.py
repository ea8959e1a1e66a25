"""Facts of the recorded data, kept here for tests on any machine: README.md says what they are."""

from pathlib import Path

FACTS = Path(__file__).parent

"""One cheap call for each model and key: what works, what does not, and the way out.

In: models or a sweep file, and keys. Out: a `Checkup` for each model, or what this client adds to latency.
"""

from asyncbench.checkup.client_latency import noise_floor
from asyncbench.checkup.findings import Checkup, as_json, as_text
from asyncbench.checkup.models import models_from
from asyncbench.checkup.probe_calls import doctor, examine

__all__ = ["Checkup", "as_json", "as_text", "doctor", "examine", "models_from", "noise_floor"]

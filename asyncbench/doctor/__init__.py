"""One cheap call per model and key: what works, what does not, and the way out."""

from asyncbench.doctor.asking import examine
from asyncbench.doctor.checkup import Checkup, as_json, as_text
from asyncbench.doctor.noise import noise_floor
from asyncbench.doctor.patients import models_from

__all__ = ["Checkup", "as_json", "as_text", "examine", "models_from", "noise_floor"]

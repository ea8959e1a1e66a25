"""One cheap call for each model and key: what works, what does not, and the way out.

In: models or a sweep file, and keys. Out: a `Checkup` for each model, or what this client adds to latency.
"""

from asyncbench.checkup.client_latency import noise_floor as noise_floor
from asyncbench.checkup.findings import Checkup as Checkup, DoctorReport as DoctorReport
from asyncbench.checkup.probe_calls import doctor as doctor, examine as examine, models_from as models_from

"""Two tiny calls for each model: what works, what does not, and what to do.

In: models or a sweep file, and keys. Out: a `Checkup` for each model, or what this client adds to latency.
"""

from asyncbench.checkup.client_speed import noise_floor as noise_floor
from asyncbench.checkup.findings import (
    Checkup as Checkup,
    DoctorReport as DoctorReport,
)
from asyncbench.checkup.probe_calls import doctor as doctor, examine as examine, models_from as models_from

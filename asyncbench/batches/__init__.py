"""Provider batches: requests into files of the right sizes, and what comes back, line by line.

In: bodies of requests. Out: parts on disk, each checked as its vendor would, and verdicts on result lines.
Nothing here calls a provider. Each module imports only from lines above its own:

    formats · enqueued
    packing · result_lines
    checking
    harvest
"""

from asyncbench.batches.checking import check_part as check_part, owners_of as owners_of
from asyncbench.batches.enqueued import (
    EnqueuedLimit as EnqueuedLimit,
    limit_told as limit_told,
    without_organization as without_organization,
)
from asyncbench.batches.formats import (
    ANTHROPIC as ANTHROPIC,
    BATCH_KEY_LENGTH as BATCH_KEY_LENGTH,
    OPENAI as OPENAI,
    BatchFormat as BatchFormat,
)
from asyncbench.batches.harvest import Harvest as Harvest
from asyncbench.batches.packing import (
    BatchPart as BatchPart,
    BatchRequest as BatchRequest,
    PartLimits as PartLimits,
    pack as pack,
)
from asyncbench.batches.result_lines import LineKind as LineKind, ResultLine as ResultLine

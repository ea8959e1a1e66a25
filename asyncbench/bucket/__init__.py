"""Folders in a bucket: `s3://BUCKET/FOLDER` holds a copy of a local folder, and grows with it.

In: an address, or the files of a folder that count. Out: objects that are written once, manifests that say
which of them count, and a local folder with what they say. It knows no results: `store` tells what counts.
"""

from asyncbench.bucket.address import (
    BucketAddress as BucketAddress,
    journal_folder as journal_folder,
    s3_address as s3_address,
)
from asyncbench.bucket.claiming import (
    Claim as Claim,
    Files as Files,
    OvertakenError as OvertakenError,
    claim as claim,
    current_folder as current_folder,
    home_of as home_of,
    run_folder as run_folder,
)
from asyncbench.bucket.fetching import (
    WORKERS as WORKERS,
    at_hand as at_hand,
    bring_folder as bring_folder,
    fetched_file as fetched_file,
    remove_folder as remove_folder,
    told_as as told_as,
    written_elsewhere as written_elsewhere,
)
from asyncbench.bucket.manifests import (
    BucketManifest as BucketManifest,
    BucketWriter as BucketWriter,
    newest_manifest as newest_manifest,
)
from asyncbench.bucket.objects import BucketObjects as BucketObjects, TakenError as TakenError

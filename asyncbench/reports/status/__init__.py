"""Status of a folder: progress, batches, files, and the last screen of a run."""

"""A provider's bill beside the recorded cost."""

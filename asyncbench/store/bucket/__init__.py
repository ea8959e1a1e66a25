"""Results folders in a bucket: claimed by conditional writes, uploaded whole, fetched as they are read."""

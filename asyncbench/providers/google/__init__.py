"""The only folder that imports the SDK of Google."""

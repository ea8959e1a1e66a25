"""Claude on Vertex AI: the only folder that knows Google's credentials for it."""

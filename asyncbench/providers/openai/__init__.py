"""OpenAI's SDK and its wire formats: chat, completions, responses."""

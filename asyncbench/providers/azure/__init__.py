"""GPT on Azure with Entra ID: the only folder that knows it."""

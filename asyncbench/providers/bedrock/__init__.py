"""Claude on Amazon Bedrock: the only folder that knows AWS."""

"""The one client for OpenAI-compatible and Anthropic endpoints."""

"""Case files into pytest items."""

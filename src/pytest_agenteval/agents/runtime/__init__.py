"""What runs an agent: deadlines, concurrency, output capture, and its errors."""

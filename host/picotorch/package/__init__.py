"""Programs as C projects."""

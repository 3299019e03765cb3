"""Images, which run from flash, and C projects."""

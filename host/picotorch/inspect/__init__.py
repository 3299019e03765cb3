"""Show a program as text and as drawings."""

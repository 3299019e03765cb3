"""What a program holds, as text and as drawings."""

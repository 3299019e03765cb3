"""Show models as one page of HTML: picotorch report, and --report of other commands."""

"""Says what the job holds."""


def main(sections):
    """Print name and size of every section (dict of memoryviews)."""
    for name in sorted(sections):
        print("section", name, len(sections[name]))

"""What make conformance runs: see tools/conformance.py."""

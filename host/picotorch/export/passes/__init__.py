"""Transform the graph of an export: one module for each pass."""

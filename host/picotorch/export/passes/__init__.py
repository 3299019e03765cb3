"""Pass over the graph of an export: a module each."""

// Only names that no source file of the port mentions would be listed here.

// This file would list names that no source file of the port contains.

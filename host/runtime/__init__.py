"""The interface of executorch.runtime."""

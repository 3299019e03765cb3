"""Programs from PyTorch modules, and programs with less memory."""

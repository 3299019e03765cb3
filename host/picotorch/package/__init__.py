"""Write programs as C projects."""

"""What scripts/gpu-check consists of: commands, checks, figures, and the report of their rows."""

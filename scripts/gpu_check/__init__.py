"""The modules of scripts/gpu-check: commands, checks, figures, and the report of their rows."""

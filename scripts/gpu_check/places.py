"""Finds the paths of programs, configs and data in a bundle or in a checkout."""
import os
import pathlib

HERE = pathlib.Path(__file__).resolve()
BUNDLE = next((folder for folder in HERE.parents if (folder / "libexec/enter").exists()), None)
SHARE = BUNDLE / "share/trainctl" if BUNDLE else HERE.parents[2]
PROGRAMS = BUNDLE / "bin" if BUNDLE else SHARE / "build/release"
BENCH = SHARE / "scripts/bench"
QUICKSTART = SHARE / "configs/quickstart.yaml"
DATA = pathlib.Path(os.environ.get("TRAINCTL_DATA") or "data").resolve()  # absolute, because commands run in another folder
# The results of earlier runs. GPU_CHECK_EVIDENCE names another file.
EVIDENCE = pathlib.Path(os.environ.get("GPU_CHECK_EVIDENCE") or SHARE / "docs/gpu-evidence.json").resolve()

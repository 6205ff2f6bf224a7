"""Writes the files next to the report: the GPU's description, its clocks during the rows, and the kernels that were chosen."""
import contextlib
import json
import pathlib
import shutil
import subprocess

from .places import SHARE

LOGGED = "timestamp,index,clocks.sm,clocks.mem,power.draw,temperature.gpu,utilization.gpu,memory.used,clocks_throttle_reasons.active"
PERIOD_MS = 200
CARRIED = SHARE / "docs/gpu-kernels.json"  # the .kernels.json of an earlier run, if one is committed


@contextlib.contextmanager
def gpu_log(description, log):
    """Writes the output of `nvidia-smi -q` to the file `description`. Until the block ends, it also writes clocks, power and
    temperature to the CSV file `log`, five times a second. Without nvidia-smi it does nothing."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        yield
        return
    with contextlib.suppress(OSError, subprocess.TimeoutExpired), open(description, "wb") as file:
        subprocess.run([smi, "-q"], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, timeout=10, check=False)
    with open(log, "wb") as file:
        process = subprocess.Popen([smi, f"--query-gpu={LOGGED}", "--format=csv", f"--loop-ms={PERIOD_MS}"], stdin=subprocess.DEVNULL,
                                   stdout=file, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class KernelCache:
    """Keeps trainctl's choices of kernels from one run of gpu-check to the next. Copies the choices from files to the cache
    folder of this run, and saves them to the last of the files again. A choice is used only on the hardware, the driver and the
    libraries with which it was timed: they are in the names of trainctl's files."""

    def __init__(self, file, folder, carried=CARRIED):
        """`folder`: an existing folder, the value of XDG_CACHE_HOME. `carried`: the committed choices, which a bundle contains; those
        in `file` come before them. If a file is damaged, it is ignored."""
        self.file, self.folder = pathlib.Path(file), pathlib.Path(folder) / "trainctl"
        self.folder.mkdir(exist_ok=True)
        known_texts = {}
        for known in (pathlib.Path(carried), self.file):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                for name, text in json.loads(known.read_text("utf-8")).items():
                    if name.startswith("kernels-") and "/" not in name and isinstance(text, str):
                        known_texts[name] = text
        for name, text in known_texts.items():
            (self.folder / name).write_text(text, "utf-8")

    def keep(self):
        texts = {path.name: path.read_text("utf-8", "replace") for path in sorted(self.folder.glob("kernels-*"))}
        if texts:
            with contextlib.suppress(OSError):
                self.file.write_text(json.dumps(texts, indent=1) + "\n", "utf-8")

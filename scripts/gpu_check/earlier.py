"""Reads what earlier runs measured on a GPU of the same model, finds the rows that have not changed since, and adds new results.

The file (docs/gpu-evidence.json) has for each GPU model "rows" and "cases". A row has the date, the text, the hash of its sources
and perhaps its figures. A case is a case of the kernel tests that passed, with the date and the hash.
"""
import contextlib
import datetime
import json
import os
import pathlib
import subprocess

from .places import EVIDENCE


def gpu_model(report):
    """Returns the name of the GPU that rank 0 of the doctor's report computes on, or of the first GPU that nvidia-smi lists if the doctor
    gave no report. Returns "" if it is unknown."""
    for rank in report.get("ranks", [])[:1]:
        for gpu in rank.get("gpus", []):
            if gpu.get("uuid") == rank.get("gpu"):
                return gpu.get("name", "")
    with contextlib.suppress(OSError, subprocess.SubprocessError, IndexError):
        words = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        return subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.splitlines()[0].strip()
    return ""


class Earlier:
    def __init__(self, model, sources, known=EVIDENCE, file=None):
        """`model`: the GPU's model; `sources`: the hash of each row's sources; `known`: the file with the earlier results; `file`:
        the file that gets them together with the results of this run. A file `known` that is missing or damaged has no results."""
        self.model, self.sources, self.file = model, sources, file
        self.today = datetime.date.today().isoformat()
        try:
            self.all = json.loads(pathlib.Path(known).read_text("utf-8"))
            here = self.all.get(model, {})
            self.rows, self.cases = dict(here.get("rows", {})), dict(here.get("cases", {}))
        except (OSError, ValueError, AttributeError, TypeError):
            self.all, self.rows, self.cases = {}, {}, {}

    def unchanged(self, row):
        """Returns the earlier result of a row if its sources have the same hash now, or None."""
        now, found = self.sources.get(row.name), self.rows.get(row.name)
        return found if now and found and found.get("sources") == now else None

    def why_skipped(self, found):
        return f"unchanged since {found['date']} on {self.model}: {found['text']}"

    def of_case(self, name, row="kernel tests"):
        """Returns "never", "changed" or "unchanged" for a case of the kernel tests."""
        found = self.cases.get(name)
        if found is None:
            return "never"
        return "unchanged" if found.get("sources") and found["sources"] == self.sources.get(row) else "changed"

    def add_case(self, name, row="kernel tests"):
        self.cases[name] = {"date": self.today, "sources": self.sources.get(row, "")}

    def add(self, row, text, figures):
        """Adds a good result. A row that failed keeps its earlier result, which has other sources or was right then."""
        if self.model and self.sources.get(row.name):
            self.rows[row.name] = {"date": self.today, "text": text, "sources": self.sources[row.name]}
            if figures is not None:
                self.rows[row.name]["figures"] = figures

    def remove(self, row):
        """Removes the result of a row that failed with these sources."""
        if self.unchanged(row):
            del self.rows[row.name]

    def write(self):
        if not self.model or self.file is None:
            return
        self.all[self.model] = {"rows": self.rows, "cases": self.cases}
        beside = self.file.with_name(self.file.name + ".tmp")
        try:
            beside.write_text(json.dumps(self.all, indent=1, sort_keys=True) + "\n", "utf-8")
            os.replace(beside, self.file)
        except OSError as problem:
            print(f"{self.file} cannot be written: {problem}")

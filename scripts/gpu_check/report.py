"""Prints the table and writes the JSON file, which is complete after every row."""
import json
import os
import pathlib
import time

LOG_LINES = 12  # lines of a failure's log on the terminal
LOG_CHARACTERS = 20000  # characters of a failure's log in the JSON file; the log file has all of them


class Report:
    def __init__(self, path, device):
        """`device`: the doctor's report."""
        self.path, self.begin = pathlib.Path(path), time.monotonic()
        self.figures = {}  # key: the row's name
        self.failed = 0
        self.document = {"ok": False, "device": device, "rows": [], "targets": []}
        self.write()
        print(f"{'check':22} {'':9} {'seconds':>7}  result")

    def write(self):
        self.document["seconds"] = time.monotonic() - self.begin
        beside = self.path.with_name(self.path.name + ".tmp")
        try:
            beside.write_text(json.dumps(self.document, indent=1) + "\n", "utf-8")
            os.replace(beside, self.path)
        except OSError as problem:
            print(f"{self.path} cannot be written: {problem}")

    def add(self, row, verdict, seconds, text, log="", figures=None):
        print(f"{row.name:22} {verdict:9} {seconds:7.1f}  {text}")
        for line in log.strip().splitlines()[-LOG_LINES:]:
            print(f"    | {line}")
        self.failed += verdict == "FAILED" or (row.decides and verdict == "not run")
        if figures is not None:
            self.figures[row.name] = figures
        self.document["rows"].append({"name": row.name, "decides": row.decides, "verdict": verdict, "seconds": seconds,
                                      "text": text, "log": log[-LOG_CHARACTERS:], "figures": figures})
        self.write()

    def compare(self, targets):
        """Prints each figure with its target, if it was measured."""
        print(f"\n{'figure':44} {'value':>8}  target")
        for target in targets:
            value = target.of(self.figures)
            verdict = "not measured" if value is None else "" if target.limit is None else "met" if target.holds(value) else "MISSED"
            print(f"{target.name:44} {'' if value is None else target.text(value):>8}  {target.limit_text():9}  {verdict}")
            self.document["targets"].append({"name": target.name, "value": value, "at_least": target.at_least,
                                             "limit": target.limit, "verdict": verdict})
        print("GPU idle does not include gaps inside a replayed graph.\n")

    def finish(self):
        """Returns the exit code."""
        self.document["ok"] = self.failed == 0
        self.write()
        print(f"{len(self.document['rows'])} rows in {self.document['seconds']:.0f} s, {self.failed} failed; {self.path} "
              f"and {self.path.with_suffix('.log').name}")
        return 1 if self.failed else 0

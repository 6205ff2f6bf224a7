"""A run of trainctl as a process: its ranks, and the events that it has written so far."""
import json
import os
import signal
import subprocess
import time
import uuid

MARK = "TRAINCTL_FAULT_RUN"


class Process:
    """A command, its descendants and the lines of one file that they write."""

    def __init__(self, words, folder, log):
        self.mark = uuid.uuid4().hex
        variables = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **{MARK: self.mark})
        with open(log, "ab") as out:
            self.command = subprocess.Popen(words, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def processes(self):
        """The environments of all its processes, by process."""
        found = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    text = file.read().decode(errors="replace")
            except OSError:
                continue
            variables = dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
            if variables.get(MARK) == self.mark:
                found[int(name)] = variables
        return found

    def ranks(self, variable="OMPI_COMM_WORLD_RANK"):
        """The process of each rank."""
        return {int(of[variable]): pid for pid, of in self.processes().items() if variable in of}

    def end(self):
        """Kills what is left of it: first the others, so that the command can still remove what it has made."""
        if self.command.poll() is None:
            self.kill({pid for pid in self.processes() if pid != self.command.pid})
            wait_until(lambda: self.command.poll() is not None, 5)
        wait_until(lambda: not self.kill(self.processes()), 1)
        self.command.wait()

    @staticmethod
    def kill(processes):
        """Kills processes; returns how many there were."""
        for pid in processes:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(processes)


def events(directory, name=None):
    """The events of a run's metrics.jsonl, without an incomplete last line."""
    try:
        with open(os.path.join(directory, "metrics.jsonl"), encoding="utf-8") as file:
            lines = file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    found = [json.loads(line) for line in lines]
    return [event for event in found if name is None or event["event"] == name]


def steps_done(directory):
    """The last step that the run has logged: of the last 16 kB of its metrics.jsonl, which hold many events."""
    try:
        with open(os.path.join(directory, "metrics.jsonl"), "rb") as file:
            begin = max(0, os.fstat(file.fileno()).st_size - (1 << 14))
            file.seek(begin)
            lines = file.read().split(b"\n")[1 if begin else 0:-1]
    except FileNotFoundError:
        return 0
    for line in reversed(lines):
        event = json.loads(line)
        if event["event"] == "step":
            return event["step"]
    return 0


def wait_until(condition, seconds, pause=0.01):
    """Whether the condition becomes true in time. It is tried after each pause, which is in seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(pause)
    return False

"""One run of the campaign: disturbed at seeded moments, started again until it is complete, and compared.

The link of a host is cut between hosts that are network namespaces of this machine (scripts/test-hosts), which needs root.
"""
import dataclasses
import json
import os
import random
import signal
import subprocess
import time

from configs import CHECKPOINT_EVERY, STEPS, STRATEGIES
from process import Process, events, steps_done, wait_until

FAULTS = ("SIGKILL of a rank", "SIGSTOP of a rank", "SIGTERM", "SIGKILL of the command", "full disk", "torn checkpoint", "resize",
          "cut link")
INSIDE = ("full disk", "torn checkpoint", "cut link")  # these faults are in the config
FULL_SECONDS = 1
CUT_SECONDS = (2, 9)  # shorter and longer than the ranks wait for each other
CUT_TIMEOUT = 5
TEST_HOSTS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "test-hosts")
# After these exit codes the same command is started again: stopped, a lost peer, a full disk, killed.
AGAIN = (75, 5, 6, -signal.SIGKILL)
MOST_STARTS = 12


@dataclasses.dataclass
class Result:
    number: int
    fault: str
    strategy: str
    ranks: int
    problem: str = ""                                         # "": it has the weights of the undisturbed run
    lost: list = dataclasses.field(default_factory=list)      # steps of each disturbance
    recovery: list = dataclasses.field(default_factory=list)  # seconds from each disturbance to the first new step


def why_no_hosts():
    """Why there can be no hosts as network namespaces; "" if there can be."""
    tried = subprocess.run([TEST_HOSTS, "true"], check=False, capture_output=True, text=True)
    return "" if tried.returncode == 0 else (tried.stdout + tried.stderr).strip()


class DisturbedRun:
    def __init__(self, trainctl, config, folder, seed, number, limit):
        self.trainctl, self.config, self.limit = trainctl, config, limit
        self.random = random.Random(f"{seed}-{number}")
        fault = FAULTS[number % len(FAULTS)]
        fitting = [each for each in STRATEGIES if each.resizes or fault not in ("resize", "cut link")]
        strategy = fitting[(number + number // len(FAULTS)) % len(fitting)]
        self.strategy = strategy
        ranks = [each for each in strategy.ranks if fault != "cut link" or each % 2 == 0]  # the same number on two hosts
        self.result = Result(number, fault, strategy.name, self.random.choice(ranks))
        self.folder = folder
        self.directory = os.path.join(folder, "run")
        self.moments = sorted(self.random.sample(range(STEPS // 10, STEPS * 8 // 10), self.random.choice((1, 2))))
        self.sets = ["--set", f"strategy={strategy.value}", "--set", f"faults={self.rehearsed()}"]
        if fault == "SIGSTOP of a rank":
            self.sets += ["--set", "cluster.timeout=5 s"]
        if fault == "cut link":
            self.sets += ["--set", f"cluster.timeout={CUT_TIMEOUT} s"]
        self.disturbances = []  # the steps that were done, and the time, of each
        self.process = None

    def rehearsed(self):
        """The faults that happen inside trainctl: the value of the key `faults`."""
        if self.result.fault == "full disk":
            return "[" + ", ".join(f"{{full_disk: {{step: {step}, for: {FULL_SECONDS} s}}}}" for step in self.moments) + "]"
        if self.result.fault == "torn checkpoint":
            saved = (self.moments[0] // CHECKPOINT_EVERY + 1) * CHECKPOINT_EVERY
            rank = self.random.randrange(self.result.ranks)
            return f"[{{torn_checkpoint: {{step: {saved}}}}}, {{kill: {{rank: {rank}, step: {saved + 1}}}}}]"
        if self.result.fault == "cut link":
            cuts = (f"{{cut_link: {{host: h2, interface: net, step: {step}, for: {self.random.choice(CUT_SECONDS)} s}}}}"
                    for step in self.moments)
            return "[" + ", ".join(cuts) + "]"
        return "[]"

    def start(self, ranks):
        words = [self.trainctl, "run", self.config, "--run-dir", self.directory, "--progress", "none", "--max-restarts", "20",
                 *self.sets]
        if self.result.fault == "cut link":
            words = [TEST_HOSTS, *words, "--hosts", f"h1:{ranks // 2},h2:{ranks // 2}"]
        else:
            words += ["--ranks", str(ranks)]
        self.process = Process(words, self.folder, os.path.join(self.folder, "log"))

    def run(self, expected):
        """Trains to the end. `expected`: the hashes that the weights may have."""
        end = time.monotonic() + self.limit
        ranks, code = self.result.ranks, None
        moments = list(self.moments) if self.result.fault not in INSIDE else []
        try:
            for _ in range(MOST_STARTS):
                self.start(ranks)
                code = self.train(moments, end)
                if code not in AGAIN:
                    break
                if not wait_until(lambda: not self.process.processes(), 10):
                    self.result.problem = "processes are left"
                    break
                if self.result.fault == "full disk":
                    time.sleep(FULL_SECONDS)
                if self.strategy.resizes and self.result.fault != "cut link":
                    ranks = self.random.choice(self.strategy.ranks)
            self.judge(code, expected)
        finally:
            self.process.end()
        return self.result

    def train(self, moments, end):
        """Disturbs the run until it ends. Returns its exit code, or None if it takes too long."""
        while time.monotonic() < end:
            code = self.process.command.poll()
            if code is not None:
                return code
            if moments and steps_done(self.directory) >= moments[0]:
                moments.pop(0)
                self.disturb(end)
            time.sleep(0.01)
        return None

    def disturb(self, end):
        """Disturbs the run once, and waits for its next start or its end."""
        ranks = self.process.ranks()
        if not ranks:
            return  # the ranks are starting or have ended
        step, now = steps_done(self.directory), time.time()
        try:
            self.act(ranks)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            return  # the run has ended, or goes on undisturbed
        self.disturbances.append((step, now))
        if self.result.fault == "SIGSTOP of a rank" and len(ranks) == 1:
            return
        wait_until(lambda: self.process.command.poll() is not None or self.next_start(now) is not None, end - time.monotonic(),
                   pause=0.1)

    def act(self, ranks):
        fault, command = self.result.fault, self.process.command.pid
        rank = self.random.choice(sorted(ranks.values()))
        if fault == "resize":
            others = [each for each in self.strategy.ranks if each != len(ranks)]
            subprocess.run([self.trainctl, "resize", self.directory, "--ranks", str(self.random.choice(others)), "--quiet"],
                           cwd=self.folder, timeout=30, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        elif fault == "SIGTERM":
            os.kill(command, signal.SIGTERM)
        elif fault == "SIGKILL of the command":
            os.kill(command, signal.SIGKILL)
        elif fault == "SIGKILL of a rank":
            os.kill(rank, signal.SIGKILL)
        else:
            os.kill(rank, signal.SIGSTOP)
            if len(ranks) == 1:  # nobody waits for a single rank
                time.sleep(1)
                os.kill(rank, signal.SIGCONT)

    def next_start(self, now):
        """The index of the first start event after a time; None if there is none."""
        found = (i for i, event in enumerate(events(self.directory)) if event["event"] == "start" and event["time"] > now)
        return next(found, None)

    def judge(self, code, expected):
        result, all_events = self.result, events(self.directory)
        for step, now in self.disturbances + self.marks():
            begin = self.next_start(now)
            if begin is None:
                continue
            result.lost.append(max(0, step - all_events[begin]["first_step"]))
            later = [event["time"] for event in all_events[begin:] if event["event"] == "step"]
            result.recovery += [time_of_step - now for time_of_step in later[:1]]
        if result.problem:
            return
        if code is None:
            result.problem = f"not complete after {self.limit} s"
        elif code != 0:
            result.problem = f"exit code {code}"
        elif all_events[-1].get("weights_sha256") not in expected:
            result.problem = "other weights"

    def marks(self):
        """The steps and times of the faults inside trainctl that end an attempt."""
        folder, found = os.path.join(self.directory, "faults"), []
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.endswith(("-full_disk", "-kill", "-cut_link")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    mark = json.load(file)
                found.append((mark["step"], mark["time"]))
        return found

"""Runs the cases of a test program in several processes, first the cases that were never run on this model of GPU."""
import html
import re
import threading

from .commands import Failed

PROCESSES = 4
MOST = 8  # cases of one process; a process takes a second or two to load CUDA's libraries
SECONDS_ALONE = 20
RESULT = re.compile(r'<TestCase name="([^"]*)"((?:(?!<TestCase ).)*?)<OverallResult success="(true|false)"', re.S)
ENDED = "SIGTERM"  # is in the result of a case during which gpu-check ended the process


def case_names(commands, program):
    for words in (["--list-test-names-only"], ["--list-tests", "--verbosity", "quiet"]):  # Catch2 2 and 3
        names = [line.strip() for line in commands.call(program, *words, may_fail=True).out.splitlines() if line.strip()]
        if names:
            return names
    return []


def pattern_of(name):
    """Returns the pattern with which Catch2 selects exactly this case."""
    return "".join("\\" + letter if letter in "\\,[]\"" else letter for letter in name)


def passed_in(text):
    """Returns the names of the cases that passed, from the output of Catch2's xml reporter, which may end before its end."""
    return {html.unescape(name) for name, _, success in RESULT.findall(text) if success == "true"}


def failed_in(text):
    """Returns the names of the cases that failed before gpu-check ended the process."""
    return {html.unescape(name) for name, words, success in RESULT.findall(text) if success == "false" and ENDED not in words}


def in_order(names, earlier):
    """Returns the batches of cases in the order in which they run: cases that never ran on this model of GPU, cases whose sources have
    changed since, and the other cases. Neighbours are in different batches, because cases that take long are often neighbours."""
    batches = []
    for state in ("never", "changed", "unchanged"):
        here = [name for name in names if (earlier.of_case(name) if earlier else "never") == state]
        count = min(len(here), max(2 * PROCESSES, -(-len(here) // MOST)))
        batches += [here[i::count] for i in range(count)]
    return batches


class Cases:
    """The cases of one program. Threads take batches of cases and run each batch in a process."""

    def __init__(self, commands, program, names):
        self.commands, self.program, self.earlier = commands, program, commands.earlier
        self.names, self.batches = names, in_order(names, commands.earlier)
        self.lock = threading.Lock()
        self.passed, self.failing, self.log = set(), {}, ""

    def run(self):
        threads = [threading.Thread(target=self.work, daemon=True) for _ in range(PROCESSES)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # a signal asks to stop
            self.commands.end_row()
            raise

    def work(self):
        while self.commands.left() > 1:
            with self.lock:
                if not self.batches:
                    return
                batch = self.batches.pop(0)
            self.run_batch(batch)

    def call(self, names, limit=float("inf")):
        """Returns the cases that passed, why the process failed (None if it did not), its output, and whether its time ended."""
        try:
            out = self.commands.call(self.program, ",".join(map(pattern_of, names)), "--reporter", "xml", limit=limit)
            return passed_in(out.out), None, out.out + out.err, False
        except Failed as failure:
            return passed_in(failure.log), str(failure), failure.log, failure.timed_out or self.commands.left() <= 0

    def run_batch(self, batch):
        """Runs cases in one process. If the process fails, runs each case that did not pass in a process of its own: after an illegal
        access, all later cases of a process fail."""
        passed, why, log, late = self.call(batch)
        rest = [name for name in batch if name not in passed]
        with self.lock:
            self.passed |= passed
            self.log += log if why else ""
            if "no CUDA device" in log:
                self.failing["all cases"] = "no CUDA device"
                self.batches.clear()
                return
        if late:
            with self.lock:
                for name in failed_in(log):
                    self.failing[name] = "there was no time to run it alone"
                    self.log += log
            return
        alone = 0
        for name in rest:
            if self.commands.left() < 1:
                return
            good, reason, log, late = self.call([name], SECONDS_ALONE)
            if late and self.commands.left() <= 0:
                return
            with self.lock:
                if name in good and reason is None:
                    self.passed.add(name)
                    alone += 1
                else:
                    self.failing[name] = reason or "printed no result"
                    self.log += log
        if why and alone == len(rest):
            with self.lock:
                self.failing["the process of " + ", ".join(f"'{name}'" for name in batch)] = f"{why}, but each case alone passed"

    def text(self):
        return f"{len(self.passed)} of {len(self.names)} cases passed in {PROCESSES} processes"

    def left_out(self):
        """Returns a text for each kind of case that the time did not reach, and whether only unchanged cases were not reached."""
        left = [name for name in self.names if name not in self.passed and name not in self.failing]
        states = {name: self.earlier.of_case(name) if self.earlier else "never" for name in left}
        texts = []
        for state, words in (("never", "that never ran on this GPU"), ("changed", "whose sources have changed")):
            if here := [name for name in left if states[name] == state]:
                texts.append(f"no time was left for {len(here)} cases {words}: " + ", ".join(f"'{name}'" for name in here))
        unchanged = sum(state == "unchanged" for state in states.values())
        if unchanged:
            texts.append(f"no time was left for {unchanged} cases that passed earlier with the same sources")
        return texts, unchanged == len(left)


def suite(name):
    def run(commands):
        program = next((path for path in (commands.programs / name, commands.programs / f"{name}-emulated") if path.exists()), None)
        if program is None:
            raise Failed(f"there is no {name}")
        names = case_names(commands, program)
        if not names:
            raise Failed("its cases cannot be listed")
        cases = Cases(commands, program, names)
        cases.run()
        if "no CUDA device" in cases.failing.values():
            raise Failed("was skipped: no CUDA device", cases.log)
        if commands.earlier:
            for case in cases.passed:
                commands.earlier.add_case(case)
            for case in cases.failing:
                commands.earlier.cases.pop(case, None)
        texts, complete = cases.left_out()
        if cases.failing:
            texts.insert(0, f"{len(cases.failing)} fail: " + ", ".join(f"'{case}' ({why})" for case, why in sorted(cases.failing.items())))
        text = "; ".join([cases.text(), *texts])
        if cases.failing or not complete:
            raise Failed(text, cases.log)
        return text
    return run

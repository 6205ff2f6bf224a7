"""Measures the time from the kill of one of two ranks to the first step after the restart, beside torchrun's elastic restart."""
import os
import signal
import statistics
import sys
import time

from configs import CHECKPOINT_EVERY, CONFIG
from process import Process, events, steps_done, wait_until

REPETITIONS = 3
KILL_AFTER = 2 * CHECKPOINT_EVERY + 5  # steps
LIMIT = 180  # seconds


def kill_second_rank(process, variable):
    """Kills rank 1; returns the time."""
    pid = process.ranks(variable)[1]
    now = time.time()
    os.kill(pid, signal.SIGKILL)
    return now


def seconds_of_trainctl(trainctl, folder):
    """Seconds from the kill to the first step of the second start."""
    os.mkdir(folder)
    config, directory = os.path.join(folder, "config.yaml"), os.path.join(folder, "run")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    process = Process([trainctl, "run", config, "--run-dir", directory, "--ranks", "2", "--max-restarts", "3", "--quiet", "--set",
                       "train.max_steps=100000"], folder, os.path.join(folder, "log"))
    try:
        if not wait_until(lambda: steps_done(directory) >= KILL_AFTER, LIMIT):
            raise RuntimeError("trainctl does not train: " + folder)
        killed = kill_second_rank(process, "OMPI_COMM_WORLD_RANK")

        def first_new_step():
            found = events(directory)
            starts = [i for i, event in enumerate(found) if event["event"] == "start"]
            return [event["time"] for event in found[starts[1]:] if event["event"] == "step"] if len(starts) > 1 else []

        if not wait_until(first_new_step, LIMIT):
            raise RuntimeError("trainctl does not start again: " + folder)
        return first_new_step()[0] - killed
    finally:
        process.end()


def seconds_of_torchrun(python, folder):
    """The same for torchrun."""
    os.mkdir(folder)
    path = os.path.join(folder, "steps")
    peer = os.path.join(os.path.dirname(os.path.abspath(__file__)), "elastic_peer.py")
    # Without the variable, restarted workers may read the addresses of those before them, and never connect.
    process = Process(["env", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1", python, "-m", "torch.distributed.run",
                       "--standalone", "--nproc-per-node", "2", "--max-restarts", "10", "--monitor-interval", "0.1", peer,
                       folder, "100000", str(CHECKPOINT_EVERY)], folder, os.path.join(folder, "log"))

    def times():
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [float(line.split()[1]) for line in file.read().split("\n")[:-1]]

    try:
        if not wait_until(lambda: len(times()) >= KILL_AFTER, LIMIT):
            raise RuntimeError("torchrun does not train: " + folder)
        killed = kill_second_rank(process, "RANK")
        time.sleep(1)  # rank 0 may finish steps that it has begun
        before = len(times())
        if not wait_until(lambda: len(times()) > before, LIMIT):
            raise RuntimeError("torchrun does not start again: " + folder)
        return times()[before] - killed
    finally:
        process.end()


def measured(seconds_of, name, program, folder):
    """The median of several measurements. A program that does not start again in time is named and left out."""
    seconds = []
    for i in range(REPETITIONS):
        try:
            seconds.append(seconds_of(program, os.path.join(folder, f"{name}-{i}")))
        except RuntimeError as error:
            print(error)
    if not seconds:
        sys.exit(f"{name} has never started again")
    print(f"{name}: " + ", ".join(f"{value:.2f} s" for value in seconds))
    return statistics.median(seconds)


def compare(trainctl, python, folder):
    """Prints both times and their ratio."""
    print("from the kill of one of 2 ranks to the first step after the restart:")
    ours = measured(seconds_of_trainctl, "trainctl", trainctl, folder)
    theirs = measured(seconds_of_torchrun, "torchrun", python, folder)
    print(f"medians: trainctl {ours:.2f} s, torchrun {theirs:.2f} s, ratio {theirs / ours:.1f}")

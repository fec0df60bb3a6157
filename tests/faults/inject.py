#!/usr/bin/env python3
"""Failing system calls: a short run is repeated, and each time one call of each
thread fails or kills the process. The log is then started without faults, and all
invariants must hold.

    SEED=N tests/faults/run [long] inject

For calls at start the tracer starts the log; for calls in operation it attaches to
a running log. The short form picks two of each kind.
"""

import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import time

import lib
import trace

# In the long form all calls that change the disk fail once; of the others, a
# sample.
CHANGING = ("write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "ftruncate", "unlink",
            "mkdir")
READING = ("openat", "lseek", "read", "pread64")
READING_MOST = 12
EFFECTS = ("error=EIO", "error=ENOSPC", "signal=KILL")
STRACE = ["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=" + ",".join(CHANGING + READING)]


class Joined:
    """A tracer attached to a running log."""

    def __init__(self, server, options):
        self.process = subprocess.Popen([*STRACE, *options, "-p", str(server.process.pid)])
        tasks = f"/proc/{server.process.pid}/task"
        for _ in range(2000):
            # The fault may occur while the tracer is still attaching.
            if not server.alive():
                return
            if all(traced(f"{tasks}/{task}/status") for task in os.listdir(tasks)):
                return
            time.sleep(0.002)
        raise SystemExit("the tracer cannot join the log")

    def end(self):
        self.process.kill()
        self.process.wait()


def traced(status):
    try:
        with open(status, encoding="ascii", errors="replace") as lines:
            return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in lines)
    except (FileNotFoundError, ProcessLookupError):
        return True  # a thread that has ended


def run(work, name, base, statements, options, at_start):
    """One run on a copy of the log; what was acknowledged."""
    disk = os.path.join(work, name)
    shutil.copytree(base, disk)
    data, log = os.path.join(disk, "data"), os.path.join(disk, "log")
    acknowledged, notes, joined = [], [], None
    try:
        server = lib.Server(data, [*STRACE, *options, "--"] if at_start else (), log=log)
    except lib.NotStarted:
        return data, acknowledged, notes
    try:
        if not at_start:
            joined = Joined(server, options)
        with lib.watching(server, notes):
            lib.register(server, statements, acknowledged, 2)
            if server.alive():
                time.sleep(1.2)
    finally:
        server.kill()
        if joined:
            joined.end()
    return data, acknowledged, notes


def schedules(work, base, statements, long, dice):
    """Every call of a run without faults, or a sample, with every effect."""
    found = []
    for at_start in (True, False):
        out = os.path.join(work, f"calls-{at_start}")
        # In operation, calls of the start are not counted; at start, nothing is sent.
        sent = [] if at_start else statements
        _, acknowledged, _ = run(work, f"first-{at_start}", base, sent, ["-o", out], at_start)
        if len(acknowledged) != len(sent):
            raise SystemExit("the run without faults did not work")
        most = trace.counts(out)
        lib.say(f"inject: {'at start' if at_start else 'in operation'} {most}")
        for call in CHANGING + READING:
            every = range(1, most.get(call, 0) + 1)
            limit = 2 if not long else len(every) if call in CHANGING else READING_MOST
            for nth in sorted(dice.sample(every, min(limit, len(every)))):
                found += [(call, effect, nth, at_start) for effect in EFFECTS]
    return found


def main():
    dice, long = random.Random(lib.seed()), "--long" in sys.argv
    work, started = lib.scratch("inject"), time.time()
    base = os.path.join(work, "base")
    os.makedirs(base)
    lib.new_log(base)
    *statements, fresh = lib.Statements(work, 7).all
    every = schedules(work, base, statements, long, dice)
    failures, tally = [], {"went on": 0, "ended midway": 0, "gave no receipt": 0}

    def one(schedule):
        number, (call, effect, nth, at_start) = schedule
        options = ["-e", f"inject={call}:{effect}:when={nth}", "-o", "/dev/null"]
        data, acknowledged, notes = run(
            work, f"run-{number}", base, statements, options, at_start
        )
        if len(acknowledged) == len(statements):
            tally["went on"] += 1
        else:
            tally["ended midway" if acknowledged else "gave no receipt"] += 1
        try:
            lib.check_data(data, acknowledged, fresh, notes)
        except lib.Broken as error:
            moment = "at the start" if at_start else "at work"
            return f"{call} {effect} when={nth} {moment}: {error}"
        shutil.rmtree(os.path.dirname(data))
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for failure in pool.map(one, enumerate(every)):
            if failure:
                failures.append(failure)
                lib.say("BROKEN " + failure)
    told = ", ".join(f"{count} {what}" for what, count in tally.items())
    seconds = time.time() - started
    lib.say(
        f"inject: {len(every)} runs, seed {lib.seed()}: {told}; {len(failures)} broken,"
        f" {seconds:.0f} s"
    )
    lib.finish(work, failures)


if __name__ == "__main__":
    sys.exit(main())

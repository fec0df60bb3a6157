#!/usr/bin/env python3
"""System calls that fail: a short run is repeated, and each time one call of
each thread is answered with an error or ends the process. Then the log is
started without interference, and must have kept its promises.

    inject.py [--long] [--limit N]
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import sys
import time

import lib

CALLS = ("write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "openat", "ftruncate",
         "unlink", "mkdir", "lseek", "read", "pread64")
EFFECTS = ("error=EIO", "error=ENOSPC", "signal=KILL")


def run(work, name, base, statements, around):
    """One run on a copy of the log; what was acknowledged before it ended."""
    disk = os.path.join(work, name)
    shutil.copytree(base, disk)
    data = os.path.join(disk, "data")
    acknowledged = []
    try:
        server = lib.Server(data, around, log=os.path.join(disk, "log"))
    except lib.NotStarted:
        return data, acknowledged
    try:
        lib.register(server, statements, acknowledged, 2)
        if server.alive():
            time.sleep(1.2)
    finally:
        server.kill()
    return data, acknowledged


def counts(path):
    """The most calls that one thread made, by name."""
    most = {}
    with open(path, errors="replace") as lines:
        for line in lines:
            found = re.match(r"^(\d+) +(?:<\.\.\. )?(\w+)(?:\(| resumed)", line)
            if found and "<unfinished" not in line:
                most[found.groups()] = most.get(found.groups(), 0) + 1
    result = {}
    for (_, call), count in most.items():
        result[call] = max(result.get(call, 0), count)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    limit = options.limit or (12 if options.long else 2)
    work = lib.scratch("inject")
    base = os.path.join(work, "base")
    os.makedirs(base)
    lib.new_log(base)
    *statements, fresh = lib.Statements(work, 7).all
    out = os.path.join(work, "calls")
    trace = ["strace", "-f", "-qq", "-e", "signal=none", "-e", "trace=" + ",".join(CALLS)]
    _, acknowledged = run(work, "first", base, statements, [*trace, "-o", out, "--"])
    if len(acknowledged) != len(statements):
        raise SystemExit("the run without faults did not work")
    most = counts(out)
    schedules = []
    for call in CALLS:
        count = most.get(call, 0)
        step = max(1, count // limit)
        for nth in range(1, count + 1, step):
            schedules += [(call, effect, nth) for effect in EFFECTS]
    lib.say(f"inject: {most}, {len(schedules)} runs")
    started, failures, tally = time.time(), [], {"went on": 0, "ended": 0, "no receipt": 0}

    def one(schedule):
        number, (call, effect, nth) = schedule
        inject = ["-e", f"inject={call}:{effect}:when={nth}"]
        around = [*trace, *inject, "-o", "/dev/null", "--"]
        data, acknowledged = run(work, f"run-{number}", base, statements, around)
        if len(acknowledged) == len(statements):
            tally["went on"] += 1
        elif acknowledged:
            tally["ended"] += 1
        else:
            tally["no receipt"] += 1
        try:
            lib.check_data(data, acknowledged, fresh)
        except lib.Broken as error:
            return f"{call} {effect} when={nth}: {error}"
        shutil.rmtree(os.path.dirname(data))
        return None

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for failure in pool.map(one, enumerate(schedules)):
            if failure:
                failures.append(failure)
                lib.say("BROKEN " + failure)
    seconds = time.time() - started
    lib.say(f"inject: {len(schedules)} runs ({tally}), {len(failures)} broken, {seconds:.0f} s")
    lib.finish(work, failures)


if __name__ == "__main__":
    sys.exit(main())

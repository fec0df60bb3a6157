#!/usr/bin/env python3
"""Every crash a run can meet: its file operations are recorded, and the disk
is rebuilt as a crash after each of them could leave it.

    SEED=N tests/faults/run [long] crash_matrix

kept        the process dies, the system lives
lost        power cut: whatever was not synced is gone
lost-names  the same, and a name survives only if its directory was synced
torn        the first operations survive, one write in part
reordered   each write survives by chance, in any order
"""

import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import time

import lib
import trace

VARIANTS = ("kept", "lost", "lost-names", "torn", "reordered")


def record(work, name, base, statements, writers, settings):
    """Runs the log on a copy of `base` under strace; what it did, and which
    receipt left when."""
    disk = os.path.join(work, name)
    shutil.copytree(base, disk)
    tree = trace.Tree(disk)
    out = os.path.join(work, name + ".strace")
    server = lib.Server(os.path.join(disk, "data"), trace.strace(out), settings=settings)
    acknowledged = []
    lib.register(server, statements, acknowledged, writers)
    time.sleep(1.3)
    server.terminate()
    found = trace.Trace(out, tree, disk)
    released = []
    for name, receipt in acknowledged:
        sent = [start for start, data in found.sent if receipt in data]
        if not sent:
            raise SystemExit("a receipt was received and never sent: the trace is not whole")
        released.append((min(sent), name, receipt))
    shutil.rmtree(disk)
    os.remove(out)
    return found, sorted(released)


def points(found):
    """A crash before the first operation, between any two, after the last."""
    ends = sorted({op.end for op in found.ops} | {op.start for op in found.ops})
    return [0] + [end + 1 for end in ends]


class Matrix:
    def __init__(self, work, found, released, fresh):
        self.work, self.found, self.released, self.fresh = work, found, released, fresh

    def one(self, schedule):
        number, crash, variant, seed = schedule
        kept, torn = self.found.schedule(crash, variant, random.Random(seed))
        disk = os.path.join(self.work, f"disk-{number}")
        self.found.build(disk, kept, torn)
        acknowledged = [(name, receipt) for sent, name, receipt in self.released if sent < crash]
        try:
            lib.check_data(os.path.join(disk, "data"), acknowledged, self.fresh)
        except lib.Broken as error:
            return f"crash at {crash}, {variant}, seed {seed}: {error}"
        shutil.rmtree(disk)
        return None

    def run(self, schedules, workers=2):
        failures = []
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            for failure in pool.map(self.one, schedules):
                if failure:
                    failures.append(failure)
                    lib.say("BROKEN " + failure)
        return failures


def choose(found, dice, limit, rounds):
    """Every point with every variant; chance variants several times."""
    every = []
    for crash in points(found):
        for variant in VARIANTS:
            for _ in range(rounds if variant in ("torn", "reordered") else 1):
                every.append((crash, variant, dice.randrange(1 << 32)))
    total = len(every)
    if limit and total > limit:
        every = dice.sample(every, limit)
    return [(number, *one) for number, one in enumerate(every)], total


def again(work, found, released, statements, dice, count):
    """Double faults: disks that a crash left are started under the tracer,
    and that start crashes in turn."""
    cases = []
    for number in range(count):
        crash = dice.choice(points(found)[1:])
        variant = dice.choice(VARIANTS)
        base = os.path.join(work, f"double-{number}")
        kept, torn = found.schedule(crash, variant, random.Random(dice.randrange(1 << 32)))
        found.build(base, kept, torn)
        second, more = record(work, f"again-{number}", base, statements, 2, {})
        before = [(0, name, receipt) for sent, name, receipt in released if sent < crash]
        cases.append((second, before + more))
        shutil.rmtree(base)
    return cases


def sees_loss(work, found, released, fresh):
    """A promise made before its sync must show up as broken, or this test
    would pass on anything."""
    early = [(0, name, receipt) for _, name, receipt in released]
    crash = points(found)[len(points(found)) // 2]
    if not Matrix(work, found, early, fresh).one((0, crash, "lost", 0)):
        raise SystemExit("the matrix does not notice that statements are lost")
    shutil.rmtree(os.path.join(work, "disk-0"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    parser.add_argument("--limit", type=int, default=None)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    work = lib.scratch("matrix")
    started = time.time()
    base = os.path.join(work, "base")
    os.makedirs(base)
    lib.new_log(base)
    count = 24 if options.long else 10
    small = lib.Statements(work, count + 6).all
    runs = [("small", small[:count], 4, options.limit or (None if options.long else 110))]
    failures, tried = [], 0
    for name, statements, writers, limit in runs:
        found, released = record(work, name, base, statements, writers, {})
        if len(released) != len(statements):
            raise SystemExit(f"{len(released)} of {len(statements)} were acknowledged")
        schedules, total = choose(found, dice, limit, 4 if options.long else 1)
        lib.say(
            f"{name}: {len(statements)} statements, {len(found.ops)} operations,"
            f" {len(schedules)} of {total} schedules, seed {options.seed}"
        )
        sees_loss(work, found, released, small[-1])
        failures += Matrix(work, found, released, small[-1]).run(schedules)
        tried += len(schedules)
        lib.say(f"{name}: {tried} schedules, {len(failures)} broken")
        doubles = again(work, found, released, small[count:-1], dice, 12 if options.long else 2)
        for second, known in doubles:
            schedules, total = choose(second, dice, 60 if options.long else 20, 1)
            failures += Matrix(work, second, known, small[-1]).run(schedules)
            tried += len(schedules)
        lib.say(f"{name}: with double faults {tried} schedules, {len(failures)} broken")
    if options.long:
        failures_large, tried_large = large(work, dice, options)
        failures += failures_large
        tried += tried_large
    seconds = time.time() - started
    lib.say(f"crash matrix: {tried} schedules, {len(failures)} broken, {seconds:.0f} s")
    lib.finish(work, failures)


def large(work, dice, options):
    """Enough bytes that the engine writes tables and drops journals."""
    base = os.path.join(work, "base-large")
    os.makedirs(base)
    lib.new_log(base)
    keys = os.path.join(work, "large")
    os.makedirs(keys)
    statements = lib.Statements(keys, 181, 60000).all
    found, released = record(work, "large-run", base, statements[:-1], 8, {})
    tables = sum("tables" in op.label for op in found.ops)
    schedules, total = choose(found, dice, options.limit or 500, 1)
    lib.say(
        f"large: {len(released)} statements, {len(found.ops)} operations, {tables} tables made,"
        f" {len(schedules)} of {total} schedules"
    )
    failures = Matrix(work, found, released, statements[-1]).run(schedules)
    return failures, len(schedules)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Clock jumps: a log runs under libfaketime, with jumps of hours and days in both
directions and restarts in the past. The times on the log never decrease.

    SEED=N tests/faults/run [long] clock
"""

import glob
import os
import random
import sys
import time

import lib

# The jumps in between are random. The longest jump forward comes last, because
# the log stays at that time afterwards.
FIRST = ["+0", "-1d", "+2h", "-400d", "+3h", "-2h", "+0"]
LAST = ["+400d", "-1s", "+1s", "+0"]
SPANS = {"s": 59, "m": 59, "h": 23, "d": 30}


def draw(dice):
    unit = dice.choice(list(SPANS))
    return f"{dice.choice('+-')}{dice.randint(1, SPANS[unit])}{unit}"


def library():
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    found += glob.glob("/usr/lib/faketime/libfaketimeMT.so.1")
    return found[0] if found else None


def main():
    preload, dice = library(), random.Random(lib.seed())
    if preload is None:
        lib.say("clock: skipped: libfaketime is not available")
        return
    drawn = [draw(dice) for _ in range(50 if "--long" in sys.argv else 5)]
    jumps = FIRST + drawn + LAST
    work = lib.scratch("clock")
    data = lib.new_log(work)
    offset = os.path.join(work, "offset")
    env = {
        "LD_PRELOAD": preload,
        "FAKETIME_TIMESTAMP_FILE": offset,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    *statements, fresh = lib.Statements(work, len(jumps) + 1).all
    times, acknowledged, server, starts = [], [], None, 0
    for jump, statement in zip(jumps, statements):
        with open(offset, "w", encoding="ascii") as file:
            file.write(jump + "\n")
        if server is None or dice.randrange(3) == 0:
            if server:
                server.terminate()
            server, starts = lib.Server(data, env=env), starts + 1
        status, receipt = server.request("POST", "/entries", statement)
        if status != 201:
            raise SystemExit(f"a registration answers {status} after {jump}")
        acknowledged.append((lib.Statements.name(statement), receipt))
        times.append(lib.place(receipt)[3])
    server.terminate()
    if max(times) - int(time.time()) < 100 * 86400:
        raise SystemExit("the clock of the log did not jump: libfaketime has no effect")
    failures = [
        f"iat went from {before} to {after} at {jump}"
        for before, after, jump in zip(times, times[1:], jumps[1:])
        if after < before
    ]
    try:
        lib.check_data(data, acknowledged, fresh)
    except lib.Broken as error:
        failures.append(str(error))
    for failure in failures:
        lib.say("BROKEN " + failure)
    lib.say(
        f"clock: {len(jumps)} jumps, {starts} starts, seed {lib.seed()}:"
        f" {len(failures)} broken"
    )
    lib.finish(work, failures)


if __name__ == "__main__":
    sys.exit(main())

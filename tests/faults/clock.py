#!/usr/bin/env python3
"""A clock that jumps: a log runs with libfaketime, hours and days forth and
back, and is restarted in the past. The times on the log never go back.

    clock.py [--long]
"""

import glob
import json
import os
import sys
import time

import lib

JUMPS = ["+0", "-1d", "+10d", "-400d", "+3h", "-2h", "+0", "+400d", "-1s", "+1s"]


def library():
    found = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
    found += glob.glob("/usr/lib/faketime/libfaketimeMT.so.1")
    return found[0] if found else None


def main():
    rounds = 6 if "--long" in sys.argv else 1
    preload = library()
    if preload is None:
        lib.say("skipped: libfaketime is not installed and cannot be had")
        return
    work = lib.scratch("clock")
    data = lib.new_log(work)
    offset = os.path.join(work, "offset")
    env = {
        "LD_PRELOAD": preload,
        "FAKETIME_TIMESTAMP_FILE": offset,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    jumps = JUMPS * rounds
    statements = lib.Statements(work, len(jumps) + 1).all
    times, wall, acknowledged, server = [], [], [], None
    for number, jump in enumerate(jumps):
        with open(offset, "w", encoding="ascii") as file:
            file.write(jump + "\n")
        if number % 3 == 0:
            if server:
                server.terminate()
            server = lib.Server(data, env=env)
        status, receipt = server.request("POST", "/entries", statements[number])
        if status != 201:
            raise SystemExit(f"a registration answers {status} after {jump}")
        acknowledged.append((lib.Statements.name(statements[number]), receipt))
        times.append(lib.place(receipt)[3])
        wall.append(jump)
        head = json.loads(server.request("GET", "/")[1])["time"]
        if number and times[-1] < times[-2]:
            raise SystemExit(f"iat went from {times[-2]} to {times[-1]} at {jump} (head {head})")
    server.terminate()
    moved = max(times) - int(time.time())
    if moved < 100 * 86400:
        raise SystemExit("the clock of the log did not jump: libfaketime has no effect")
    lib.check_data(data, acknowledged, statements[-1])
    lib.say(f"clock: {len(jumps)} jumps, {len(jumps) // 3 + 1} starts, iat never went back")
    lib.finish(work, [])


if __name__ == "__main__":
    sys.exit(main())

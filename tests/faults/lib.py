"""Shared by the fault tests: a log, a client, and the invariants.

Receipts are parsed and trees computed here without any code of the log, so that
errors in one implementation are found by the other.
"""

import base64
import contextlib
import functools
import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def binary():
    """The program, from $CAPSTAN as set by `run`."""
    return os.path.abspath(os.environ["CAPSTAN"])


def hammer():
    """The load generator, which `cargo build --workspace` puts beside it."""
    return os.path.join(os.path.dirname(binary()), "capstan-hammer")


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("CAPSTAN")}


def capstan(*arguments, program=None, cwd=None, check=True):
    done = subprocess.run(
        [program or binary(), *arguments], cwd=cwd, env=environment(), capture_output=True, timeout=120
    )
    if check and done.returncode != 0:
        raise Broken(f"{done.args[0]} {' '.join(arguments)}: {done.stderr.decode()}{done.stdout.decode()}")
    return done


class Broken(Exception):
    """A violated invariant."""


# -- CBOR, as far as receipts need it ----------------------------------------


def cbor(data, at=0):
    first = data[at]
    kind, short = first >> 5, first & 31
    at += 1
    if short < 24:
        value = short
    elif short < 28:
        width = 1 << (short - 24)
        value, at = int.from_bytes(data[at : at + width], "big"), at + width
    else:
        raise ValueError("an item without a length")
    if kind == 0:
        return value, at
    if kind == 1:
        return -1 - value, at
    if kind in (2, 3):
        piece = data[at : at + value]
        return (piece if kind == 2 else piece.decode()), at + value
    if kind == 4:
        items = []
        for _ in range(value):
            item, at = cbor(data, at)
            items.append(item)
        return items, at
    if kind == 5:
        pairs = {}
        for _ in range(value):
            key, at = cbor(data, at)
            pairs[key], at = cbor(data, at)
        return pairs, at
    if kind == 6:
        return cbor(data, at)
    return {20: False, 21: True, 22: None}.get(short), at


def place(receipt):
    """Tree size, leaf index, path and time of a receipt."""
    (protected, unprotected, _, _), _ = cbor(receipt)
    (proof,) = unprotected[396][-1]
    (size, index, path), _ = cbor(proof)
    claims = cbor(protected)[0].get(15, {})
    return size, index, path, claims.get(6)


def bstr(data):
    """A byte string in CBOR, up to 64 KiB."""
    size = len(data)
    head = [0x40 | size] if size < 24 else [0x58, size] if size < 256 else [0x59, *divmod(size, 256)]
    return bytes(head) + data


# -- ES256, which signs receipts ----------------------------------------------

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)


def plus(a, b):
    """The sum of two points of P-256."""
    if a is None or b is None:
        return a or b
    if a[0] == b[0] and (a[1] + b[1]) % P == 0:
        return None
    if a == b:
        slope = 3 * (a[0] * a[0] - 1) * pow(2 * a[1], -1, P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P)
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def times(number, point):
    total = None
    while number:
        if number & 1:
            total = plus(total, point)
        point, number = plus(point, point), number >> 1
    return total


@functools.lru_cache(maxsize=None)
def is_signed(point, message, signature):
    r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
    if not (0 < r < ORDER and 0 < s < ORDER):
        return False
    digest, inverse = int.from_bytes(sha256(message), "big"), pow(s, -1, ORDER)
    found = plus(times(digest * inverse % ORDER, BASE), times(r * inverse % ORDER, point))
    return found is not None and found[0] % ORDER == r


def check_signature(keys, receipt, root):
    """Checks the signature of a receipt over the root."""
    (protected, _, _, signature), _ = cbor(receipt)
    message = b"\x84\x6aSignature1" + bstr(protected) + bstr(b"") + bstr(root)
    point = keys.get(cbor(protected)[0].get(4))
    if point is None or not is_signed(point, message, signature):
        raise Broken("a receipt is not signed by a key of the log")


# -- RFC 9162 ----------------------------------------------------------------


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf_of(name):
    return sha256(b"\0", bytes.fromhex(name))


def root_of(leaves):
    if not leaves:
        return sha256()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\1", root_of(leaves[:split]), root_of(leaves[split:]))


def root_by_path(leaf, index, size, path):
    node, last = leaf, size - 1
    for sibling in path:
        if last == 0:
            raise Broken("a path is too long")
        if index & 1 or index == last:
            node = sha256(b"\1", sibling, node)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = sha256(b"\1", node, sibling)
        index, last = index >> 1, last >> 1
    if last:
        raise Broken("a path is too short")
    return node


class Roots:
    """Roots of prefixes of one tree, with cached subtrees."""

    def __init__(self, leaves):
        self.levels = [leaves]
        while len(self.levels[-1]) > 1:
            below = self.levels[-1]
            pairs = range(0, len(below) - 1, 2)
            self.levels.append([sha256(b"\1", below[i], below[i + 1]) for i in pairs])

    def at(self, size):
        peaks, start = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                peaks.append(self.levels[level][start >> level])
                start += 1 << level
        root = peaks.pop()
        while peaks:
            root = sha256(b"\1", peaks.pop(), root)
        return root


# -- a running log -----------------------------------------------------------


class Server:
    """A running log, or with `wait=False` one that is starting."""

    def __init__(
        self, data, around=(), env=None, log=None, settings=(), port=0, wait=True
    ):
        self.stderr = open(log, "wb") if log else subprocess.DEVNULL
        environ = environment()
        environ.update(env or {})
        environ.update(settings)
        self.process = subprocess.Popen(
            [*around, binary(), "serve", "--listen", f"127.0.0.1:{port}", "--data", data],
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=environ,
            start_new_session=True,
        )
        if wait:
            self.wait()

    def wait(self):
        """Waits until it serves; raises `NotStarted` if it does not."""
        line = self.process.stdout.readline().decode().strip()
        prefix = "listening on http://"
        if not line.startswith(prefix):
            self.kill()
            raise NotStarted(f"the log did not start: {line!r}")
        self.address = line[len(prefix) :]

    def request(self, method, path, body=None, timeout=20):
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        try:
            connection.request(method, path, body, {"content-type": "application/cose"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        """SIGKILL to the process group, so that no tracer outlives the log. Does
        nothing if it has ended."""
        if self.process.stdout.closed:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.ended()

    def ended(self):
        self.process.wait()
        self.process.stdout.close()
        if self.stderr is not subprocess.DEVNULL:
            self.stderr.close()

    def terminate(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Broken("the log did not stop on SIGTERM") from None
        self.ended()


class NotStarted(Exception):
    """The log does not listen."""


class Statements:
    """Signed statements, made once and used by every run."""

    def __init__(self, work, count, payload_bytes=200):
        self.work = work
        self.all = []
        capstan("keygen", "--output", "agent.key", cwd=work)
        for number in range(count):
            text = f"statement {number} ".encode()
            payload = os.path.join(work, "payload")
            with open(payload, "wb") as file:
                file.write((text * (payload_bytes // len(text) + 1))[:payload_bytes])
            out = os.path.join(work, "one.cose")
            if os.path.exists(out):
                os.remove(out)
            capstan(
                *f"seal payload --key agent.key --content-type text/plain --iss https://a.example"
                f" --sub urn:example:{number} --output one.cose".split(),
                cwd=work,
            )
            with open(out, "rb") as file:
                self.all.append(file.read())

    @staticmethod
    def name(statement):
        """SHA-256 of the statement with an empty unprotected map."""
        (protected, unprotected, payload, signature), _ = cbor(statement)
        if unprotected == {}:
            return sha256(statement).hex()
        raise Broken("the statements of these tests have nothing unprotected")


def new_log(work, name="data"):
    policy = os.path.join(ROOT, "policy", "open.toml")
    capstan("init", "--data", name, "--name", "faults.invalid", "--policy", policy, cwd=work)
    return os.path.join(work, name)


def register(server, statements, acknowledged, writers=4):
    """Registers from several threads until done or the log is gone."""
    waiting = list(reversed(statements))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                statement = waiting.pop()
            try:
                status, body = server.request("POST", "/entries", statement)
            except (OSError, http.client.HTTPException):
                return
            if status == 201:
                with lock:
                    acknowledged.append((Statements.name(statement), body))

    threads = [threading.Thread(target=work) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def watching(server, notes):
    """Polls the checkpoint meanwhile."""
    done = threading.Event()

    def look():
        while not done.wait(0.05):
            try:
                status, note = server.request("GET", "/checkpoint")
            except (OSError, http.client.HTTPException):
                return
            if status == 200 and note not in notes:
                notes.append(note)

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def tree_size(server):
    return json.loads(server.request("GET", "/")[1])["tree_size"]


def leaves_of(server):
    size = tree_size(server)
    leaves = []
    for tile in range((size + 255) // 256):
        width = min(256, size - tile * 256)
        path = f"/tile/0/{tile:03}" + ("" if width == 256 else f".p/{width}")
        status, body = server.request("GET", path)
        if status != 200:
            raise Broken(f"{path} answers {status}")
        leaves += [body[i : i + 32] for i in range(0, len(body), 32)]
    if len(leaves) != size:
        raise Broken(f"{size} leaves are promised, {len(leaves)} served")
    return leaves


def keys_of(server):
    """The points of the log's keys by thumbprint."""
    points = {}
    for key in cbor(server.request("GET", "/.well-known/scitt-keys")[1])[0]:
        points[key[2]] = tuple(int.from_bytes(key[label], "big") for label in (-2, -3))
    return points


def note_head(note):
    """Size and root of a checkpoint."""
    lines = note.decode().splitlines()
    return int(lines[1]), base64.b64decode(lines[2])


def check_tree(server, acknowledged, notes=()):
    """I1 to I4: every receipt proves its statement, every head is a prefix of the
    tree, every statement is present once, at the index of its receipt."""
    keys, leaves = keys_of(server), leaves_of(server)
    roots = Roots(leaves)
    now = note_head(server.request("GET", "/checkpoint")[1])[0]
    for size, root in map(note_head, notes):
        if size > now:
            raise Broken(f"a checkpoint was of {size} leaves, now it is of {now}")
        if roots.at(size) != root:
            raise Broken(f"the checkpoint of {size} leaves is no prefix of the tree")
    if len(set(leaves)) != len(leaves):
        raise Broken("a statement stands twice in the log")
    for name, receipt in acknowledged:
        size, index, path, _ = place(receipt)
        if size > len(leaves):
            raise Broken(f"a receipt is for {size} leaves, {len(leaves)} are left")
        if leaves[index] != leaf_of(name):
            raise Broken(f"{name} was acknowledged at {index} and is not there")
        if root_by_path(leaf_of(name), index, size, path) != roots.at(size):
            raise Broken(f"the head of {size} leaves is no prefix of the tree")
        check_signature(keys, receipt, roots.at(size))
    return leaves


def check_data(data, acknowledged, fresh, notes=(), settings=()):
    """All invariants of a directory after a fault: it is intact (I5), everything
    acknowledged is there (I1 to I4), and a rollback is detected (I6)."""
    done = capstan("fsck", "--json", "--data", data, check=False)
    if done.returncode != 0:
        raise Broken(f"fsck: {done.stdout.decode()}{done.stderr.decode()[-600:]}")
    old = data + ".old"
    shutil.copytree(data, old, ignore=shutil.ignore_patterns("*.sock"))
    log = data + ".log"
    try:
        server = Server(data, log=log, settings=settings)
    except NotStarted as error:
        raise Broken(f"{error}: {said(log)}") from None
    try:
        before = check_tree(server, acknowledged, notes)
        status, receipt = server.request("POST", "/entries", fresh)
        if status != 201:
            raise Broken(f"after recovery a registration answers {status}")
        if place(receipt)[1] != len(before):
            raise Broken(f"the next index is {place(receipt)[1]}, {len(before)} are taken")
        check_tree(server, acknowledged + [(Statements.name(fresh), receipt)], notes)
        server.terminate()
    finally:
        server.kill()
    check_rollback(data, old, settings)


def check_rollback(data, old, settings=()):
    """I6: an older copy detects that a later head was signed."""
    shutil.rmtree(data)
    os.rename(old, data)
    log = data + ".log"
    try:
        server = Server(data, log=log, settings=settings)
    except NotStarted:
        if "rolled back" not in said(log):
            raise Broken(f"the log put back does not say why it refuses: {said(log)}") from None
        return
    server.kill()
    raise Broken("the log was put back to an older state, and starts")


def said(log):
    with open(log, errors="replace") as file:
        return file.read()[-600:]


def seed():
    """The random seed of a run, from `SEED`. It does not control timing."""
    return int(os.environ.get("SEED", "1"))


def say(text):
    print(text, flush=True)


def scratch(name):
    """A temporary directory, in memory if there is room."""
    parent = os.environ.get("FAULTS_DIR") or os.environ.get("TMPDIR") or "/tmp"
    path = os.path.join(parent, f"capstan-faults-{name}-{os.getpid()}")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def finish(work, failures):
    """Keeps the evidence of a violation, if any."""
    if failures:
        say(f"evidence is in {work}")
        sys.exit(1)
    shutil.rmtree(work, ignore_errors=True)

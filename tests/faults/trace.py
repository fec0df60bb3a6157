"""The file operations of a run, parsed from strace, and the resulting disks.

A `Disk` is replayed from the operations before a crash. The schedule says which
unsynced ones survive: all, none, each at random, or the last one torn. A name is
durable once its directory was synced, data once its file was.
"""

import os
import re

CALLS = (
    "openat,open,creat,close,write,pwrite64,writev,pwritev,pwritev2,lseek,fsync,fdatasync,"
    "ftruncate,fallocate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,"
    "link,linkat,symlink,symlinkat,fcntl,dup,dup2,dup3,sendto,sendmsg,copy_file_range,"
    "sendfile,sync,syncfs,sync_file_range,msync"
)
# Calls that the disk model does not support; a trace with one is rejected.
FOREIGN = {"copy_file_range", "sendfile", "link", "linkat", "symlink", "symlinkat", "msync"}


def strace(out, more=()):
    return [
        "strace", "-f", "-qq", "-xx", "-s", "4000000", "-e", "signal=none",
        "-e", "trace=" + CALLS, *more, "-o", out, "--",
    ]


def counts(path):
    """The largest number of calls by one thread, by name."""
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


LINE = re.compile(rb"^(\d+) +(.*)$")
UNFINISHED = re.compile(rb"^(.*?) *<unfinished \.\.\.>$")
RESUMED = re.compile(rb"^<\.\.\. (\w+) resumed>(.*)$")
CALL = re.compile(rb"^(\w+)\((.*)\) += (-?\d+|0x[0-9a-f]+|\?)(.*)$", re.S)
STRING = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')


def text_of(hexed):
    return bytes.fromhex(hexed.replace(b"\\x", b"").decode())


class Op:
    """One operation: start, end, effect."""

    __slots__ = ("kind", "start", "end", "node", "at", "data", "names", "label")

    def __init__(self, kind, start, end, **rest):
        self.kind, self.start, self.end = kind, start, end
        self.node = rest.get("node")
        self.at = rest.get("at")
        self.data = rest.get("data")
        self.names = rest.get("names")
        self.label = rest.get("label", "")


class File:
    """An open file, shared by duplicated descriptors."""

    def __init__(self, node, append):
        self.node, self.append, self.offset = node, append, 0


class Tree:
    """Inodes and names, as the traced process sees them."""

    def __init__(self, root):
        self.root = root
        self.directory = {}  # node -> {name: node}
        self.content = {}  # node -> bytes, as it was before the run
        self.next = 0
        self.top = self.load(root)

    def new(self):
        self.next += 1
        return self.next

    def load(self, path):
        node = self.new()
        if os.path.isdir(path) and not os.path.islink(path):
            self.directory[node] = {}
            for name in sorted(os.listdir(path)):
                if not os.path.exists(os.path.join(path, name)):
                    continue
                self.directory[node][name] = self.load(os.path.join(path, name))
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                self.content[node] = file.read()
        return node

    def parts(self, path):
        if not path.startswith(self.root + "/") and path != self.root:
            return None
        return [p for p in path[len(self.root) :].split("/") if p not in ("", ".")]

    def find(self, parts):
        node = self.top
        for part in parts:
            node = self.directory.get(node, {}).get(part)
            if node is None:
                return None
        return node


class Trace:
    """The operations under `root`, and what was sent to clients when."""

    def __init__(self, path, tree, cwd):
        self.tree, self.cwd = tree, cwd
        self.names = {node: dict(entries) for node, entries in tree.directory.items()}
        self.sizes = {node: len(data) for node, data in tree.content.items()}
        self.files, self.ops, self.sent = {}, [], []
        pending = {}
        with open(path, "rb") as lines:
            for number, line in enumerate(lines):
                found = LINE.match(line.rstrip(b"\n"))
                if not found:
                    continue
                thread, rest = found.groups()
                cut = UNFINISHED.match(rest)
                resumed = RESUMED.match(rest)
                start = number
                if cut and cut.group(1).startswith(b"close("):
                    # From here on the number may be reused.
                    self.on_close(cut.group(1)[6:], None, None, None, None)
                    continue
                if cut:
                    pending[thread] = (number, cut.group(1))
                    continue
                if resumed:
                    if thread not in pending:
                        continue
                    start, head = pending.pop(thread)
                    rest = head + resumed.group(2)
                call = CALL.match(rest)
                if call:
                    self.call(call, start, number)
        # A call in progress at the end of the trace may have sent its data.
        for start, head in pending.values():
            if head.startswith((b"sendto", b"write")):
                self.send(head, start)
        self.end = number + 1

    def node(self, path):
        parts = self.tree.parts(os.path.normpath(os.path.join(self.cwd, path)))
        if parts is None:
            return None, None, None
        node, above = self.tree.top, None
        for part in parts:
            above, node = node, (self.names.get(node) or {}).get(part) if node else None
        return node, above, parts[-1] if parts else ""

    def send(self, arguments, start):
        self.sent.append((start, b"".join(text_of(s) for s, _ in STRING.findall(arguments))))

    def call(self, call, start, end):
        name, arguments, result, _ = call.groups()
        name = name.decode()
        if result == b"?" or result.startswith(b"-"):
            return
        result = int(result, 0)
        if name in FOREIGN:
            raise SystemExit(f"the trace holds {name}, which is not modelled")
        strings = STRING.findall(arguments)
        if any(cut for _, cut in strings):
            raise SystemExit("a string of the trace was cut")
        texts = [text_of(s) for s, _ in strings]
        number = re.match(rb"^(\d+)", arguments)
        file = self.files.get(int(number.group(1))) if number else None
        method = getattr(self, "on_" + name, None)
        if method:
            method(arguments, texts, file, result, (start, end))

    def add(self, kind, when, **rest):
        self.ops.append(Op(kind, *when, **rest))

    def opened(self, arguments, path, result, when):
        node, above, name = self.node(path.decode())
        self.files.pop(result, None)
        if above is None and node is None:
            return
        if node is None:
            node = self.tree.new()
            self.names[above][name] = node
            self.sizes[node] = 0
            self.add("name", when, names=[(above, name, node)], label="create " + path.decode())
        elif b"O_TRUNC" in arguments and self.sizes.get(node):
            self.sizes[node] = 0
            self.add("size", when, node=node, at=0, label="truncate")
        self.files[result] = File(node, b"O_APPEND" in arguments)

    def on_openat(self, arguments, texts, file, result, when):
        self.opened(arguments, texts[0], result, when)

    on_open = on_creat = on_openat

    def on_close(self, arguments, texts, file, result, when):
        self.files.pop(int(re.match(rb"\d+", arguments).group()), None)

    def on_fcntl(self, arguments, texts, file, result, when):
        if b"F_DUPFD" in arguments and file:
            self.files[result] = file

    def on_dup(self, arguments, texts, file, result, when):
        if file:
            self.files[result] = file

    on_dup2 = on_dup3 = on_dup

    def written(self, file, data, at, when):
        self.sizes[file.node] = max(self.sizes.get(file.node, 0), at + len(data))
        self.add("data", when, node=file.node, at=at, data=data, label=f"write {len(data)}")

    def on_write(self, arguments, texts, file, result, when):
        data = b"".join(texts)
        if file is None:
            self.sent.append((when[0], data))
            return
        data = data[:result]
        at = self.sizes.get(file.node, 0) if file.append else file.offset
        file.offset = at + len(data)
        self.written(file, data, at, when)

    on_writev = on_write

    def on_pwrite64(self, arguments, texts, file, result, when):
        if file:
            numbers = re.findall(rb", (\d+)", STRING.sub(b"", arguments))
            self.written(file, b"".join(texts)[:result], int(numbers[-1]), when)

    on_pwritev = on_pwritev2 = on_pwrite64

    def on_sendto(self, arguments, texts, file, result, when):
        self.sent.append((when[0], b"".join(texts)))

    on_sendmsg = on_sendto

    def on_lseek(self, arguments, texts, file, result, when):
        if file:
            file.offset = result

    def on_ftruncate(self, arguments, texts, file, result, when):
        if file:
            size = int(arguments.split(b",")[1])
            self.sizes[file.node] = size
            self.add("size", when, node=file.node, at=size, label=f"size {size}")

    def on_fallocate(self, arguments, texts, file, result, when):
        if file:
            _, mode, offset, length = arguments.split(b",")
            if mode.strip() == b"0":
                size = max(self.sizes.get(file.node, 0), int(offset) + int(length))
                self.sizes[file.node] = size
                self.add("size", when, node=file.node, at=size, label=f"room {size}")

    def on_fsync(self, arguments, texts, file, result, when):
        if file:
            self.add("sync", when, node=file.node, label="sync")

    on_fdatasync = on_fsync

    def on_rename(self, arguments, texts, file, result, when):
        node, above, name = self.node(texts[0].decode())
        _, to, new = self.node(texts[1].decode())
        if node is None or to is None:
            return
        self.names[above].pop(name)
        self.names[to][new] = node
        label = f"rename {name} {new}"
        self.add("name", when, names=[(above, name, None), (to, new, node)], label=label)

    on_renameat = on_renameat2 = on_rename

    def on_unlink(self, arguments, texts, file, result, when):
        node, above, name = self.node(texts[0].decode())
        if node is not None:
            self.names[above].pop(name)
            self.add("name", when, names=[(above, name, None)], label="unlink " + name)

    on_unlinkat = on_rmdir = on_unlink

    def on_mkdir(self, arguments, texts, file, result, when):
        _, above, name = self.node(texts[0].decode())
        if above is not None:
            node = self.tree.new()
            self.names[above][name] = node
            self.names[node] = {}
            self.add("name", when, names=[(above, name, node)], label="mkdir " + name)

    on_mkdirat = on_mkdir

    # -- disks ---------------------------------------------------------------

    def durable(self, crash, journalled):
        """The operations that a power cut at `crash` cannot undo. With
        `journalled`, a sync of any file also makes all earlier names durable, as in
        ext4 and XFS; without, only the sync of their directory does."""
        synced, names_before = {}, -1
        for op in self.ops:
            if op.kind == "sync" and op.end < crash:
                synced[op.node] = max(synced.get(op.node, -1), op.start)
                names_before = max(names_before, op.start)
        kept = set()
        for number, op in enumerate(self.ops):
            if op.end >= crash:
                continue
            if op.kind == "name":
                above = [synced.get(directory, -1) for directory, _, _ in op.names]
                if op.end < min(above) or (journalled and op.end < names_before):
                    kept.add(number)
            elif op.kind in ("data", "size") and op.end < synced.get(op.node, -1):
                kept.add(number)
        return kept

    def schedule(self, crash, variant, dice):
        """Which operations survive, and where the last write is torn."""
        done = [n for n, op in enumerate(self.ops) if op.end < crash and op.kind != "sync"]
        if variant == "kept":
            return set(done), None
        kept = self.durable(crash, variant != "lost-names")
        lost = [n for n in done if n not in kept]
        torn = None
        if variant in ("torn", "reordered"):
            # Names survive in order, data does not.
            names = [n for n in lost if self.ops[n].kind == "name"]
            kept |= set(names[: dice.randint(0, len(names))])
            data = [n for n in lost if self.ops[n].kind != "name"]
            if variant == "reordered":
                kept |= {n for n in data if dice.random() < 0.5}
            elif data:
                cut = dice.randrange(len(data))
                kept |= set(data[:cut])
                last = self.ops[data[cut]]
                if last.kind == "data" and last.data:
                    kept.add(data[cut])
                    torn = (data[cut], dice.randrange(len(last.data)))
        return kept, torn

    def build(self, to, kept, torn):
        """Writes the disk that a schedule leaves."""
        names = {node: dict(entries) for node, entries in self.tree.directory.items()}
        content = {node: bytearray(data) for node, data in self.tree.content.items()}
        for number in sorted(kept):
            op = self.ops[number]
            if op.kind == "name":
                for above, name, node in op.names:
                    if node is None:
                        names.get(above, {}).pop(name, None)
                    else:
                        names.setdefault(above, {})[name] = node
                        if node in self.names:
                            names.setdefault(node, {})
            else:
                data = content.setdefault(op.node, bytearray())
                if op.kind == "size":
                    del data[op.at :]
                    data.extend(bytes(op.at - len(data)))
                    continue
                piece = op.data[: torn[1]] if torn and torn[0] == number else op.data
                if len(data) < op.at:
                    data.extend(bytes(op.at - len(data)))
                data[op.at : op.at + len(piece)] = piece
        self.write(to, self.tree.top, names, content)

    def write(self, path, node, names, content):
        if node in names:
            os.makedirs(path, exist_ok=True)
            for name, below in names[node].items():
                self.write(os.path.join(path, name), below, names, content)
        else:
            mode = 0o600 if path.endswith(".pem") else 0o644
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
                file.write(content.get(node, b""))

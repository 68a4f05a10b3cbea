# Runs cells inside the sandbox: one JSON line in, one JSON line out for each.
#
# Requests come on what was descriptor 0 and answers go to what was descriptor 1. Both are moved away
# before any cell runs: for cells, 0 is empty, and 1 and 2 are the pipe that was descriptor 2, so that
# printed text cannot be taken for an answer and keeps its order. What a cell does to its descriptors and
# to `sys.stdout` and `sys.stderr` ends with it. Cells share one `__main__`.
#
# Cells are notebook cells: the value of a last expression is shown, `await` may stand outside of functions,
# and what is no Python is read once more without its Markdown fence and with `!command` lines.
import os
import sys


def main():
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    # Out of the way of cells that close or write to what they find.
    try:
        printed = os.dup2(2, 60, inheritable=False)
    except OSError:
        # Fewer descriptors than that are allowed.
        printed = os.dup(2)
    own_streams()
    sys.path.insert(0, os.getcwd())
    own = os.getpid()

    import json
    import types

    space = types.ModuleType("__main__")
    space.__builtins__ = __builtins__
    sys.modules["__main__"] = space
    sys.argv = [""]

    os.write(answers, b'{"id":0,"end":"ready"}\n')
    count = 0
    for line in requests:
        request = json.loads(line)
        restore(empty, printed)
        if "command" in request:
            answer = run_command(request["command"])
        else:
            count += 1
            answer = run_code(request["code"], "<cell %d>" % count, space)
        if os.getpid() != own:
            # A cell forked and its child came back here: only one process may answer.
            os._exit(0)
        answer["id"] = request["id"]
        os.write(answers, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def text(descriptor):
    return os.fdopen(descriptor, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)


def restore(empty, printed):
    # An earlier cell may have closed or redirected them; what it could not print comes now.
    os.dup2(empty, 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    own_streams()
    flush()


streams = {}


def own_streams():
    # The same two as long as they are open: handlers of log records keep them.
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        try:
            is_open = not streams[name].closed
        except BaseException:
            # Not made yet, or taken apart.
            is_open = False
        if not is_open:
            streams[name] = text(descriptor)
        setattr(sys, name, streams[name])
        setattr(sys, "__%s__" % name, streams[name])


def run_code(code, name, space):
    end = {"end": "ok"}
    try:
        import ast
        import linecache

        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree, code = parsed(code, name)
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        evaluate(tree, name, "exec", space)
        if last is not None:
            # As at a prompt: shown unless it is None, and kept as `_`.
            value = evaluate(ast.Expression(last.value), name, "eval", space)
            own_streams()
            if value is not None:
                space.__dict__["_"] = value
                print(repr(value))
    except SystemExit as request:
        own_streams()
        if request.code not in (None, 0):
            print(request.code, file=sys.stderr)
    except BaseException as error:
        end = {"end": "error"}
        own_streams()
        show(error, name)
    flush()
    return end


def evaluate(tree, name, mode, space):
    import ast

    code = compile(tree, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value = eval(code, space.__dict__)
    # CO_COROUTINE: it has an `await` outside of functions.
    return loop().run_until_complete(value) if code.co_flags & 0x80 else value


def loop():
    # One for all cells: what one of them opens another awaits.
    if "loop" not in kept or kept["loop"].is_closed():
        import asyncio

        kept["loop"] = asyncio.new_event_loop()
    return kept["loop"]


kept = {}
SETTINGS = ("%matplotlib", "%config", "%load_ext", "%reload_ext", "%autoreload")


MOST_MARKS = 200


def parsed(code, name):
    import ast

    try:
        return ast.parse(code, name), code
    except SyntaxError as error:
        first = error
    # Only lines at which the parser stops: what looks like a mark in a string is none.
    lines = without_fence(code)
    for _ in range(MOST_MARKS + 1):
        plain = "\n".join(lines)
        try:
            return ast.parse(plain, name), plain
        except SyntaxError as error:
            at = (error.lineno or 0) - 1
        meant = without_mark(lines[at]) if 0 <= at < len(lines) else None
        if meant is None:
            break
        lines[at] = meant
    raise first


def without_fence(code):
    # Lines as the parser counts them.
    lines = code.replace("\r\n", "\n").replace("\r", "\n").rstrip().split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if first < len(lines) - 1 and lines[first].startswith("```") and lines[-1].strip() == "```":
        # An empty line in place of the fence: the numbers of lines stay.
        lines[first] = ""
        lines.pop()
    return lines


def without_mark(line):
    bare = line.lstrip()
    indent = line[: len(line) - len(bare)]
    if bare.startswith("%pip "):
        bare = "!" + bare[1:]
    if bare.startswith("!"):
        call = '__import__("subprocess").run([%r, "-c", %r], stdin=-3)' % (shell(), bare[1:])
        return indent + "None if " + call + " else None"
    if bare.startswith(SETTINGS):
        return indent + "pass"
    return None


def show(error, name):
    try:
        import traceback

        # Without the frames of this file.
        frame = error.__traceback__
        while frame is not None and not frame.tb_frame.f_code.co_filename.startswith("<cell "):
            frame = frame.tb_next
        traceback.print_exception(type(error), error, frame, file=sys.stderr)
        if isinstance(error, ModuleNotFoundError) and "https_proxy" not in os.environ:
            print("[There is no network here, so that nothing can be installed: do without it.]", file=sys.stderr)
    except BaseException as second:
        write("%s (and its traceback could not be shown: %s)\n" % (type(error).__name__, type(second).__name__))


def run_command(command):
    import subprocess

    try:
        done = subprocess.run([shell(), "-c", command], stdin=subprocess.DEVNULL)
        return {"end": "exit", "code": done.returncode}
    except BaseException as error:
        write("%s: %s\n" % (type(error).__name__, error))
        return {"end": "exit", "code": 127}


def write(text):
    try:
        os.write(2, text.encode("utf-8", "backslashreplace"))
    except OSError:
        pass


def shell():
    return "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"


def flush():
    for stream in streams.values():
        try:
            stream.flush()
        except BaseException:
            pass


main()

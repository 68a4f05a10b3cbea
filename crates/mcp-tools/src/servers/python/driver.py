# Runs cells inside the sandbox: one JSON line in, one JSON line out for each.
#
# Requests come on what was descriptor 0 and answers go to what was descriptor 1. Both are moved away
# before any cell runs: for cells, 0 is empty, and 1 and 2 are the pipe that was descriptor 2, so that
# printed text cannot be taken for an answer and keeps its order. Cells share one `__main__`.
import os
import sys


def main():
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
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


def run_code(code, name, space):
    end = {"end": "ok"}
    try:
        import ast
        import linecache

        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), space.__dict__)
        if last is not None:
            # As at a prompt: shown unless it is None, and kept as `_`.
            value = eval(compile(ast.Expression(last.value), name, "eval"), space.__dict__)
            if value is not None:
                space.__dict__["_"] = value
                print(repr(value))
    except SystemExit as request:
        if request.code not in (None, 0):
            print(request.code, file=sys.stderr)
    except BaseException as error:
        end = {"end": "error"}
        show(error, name)
    flush()
    return end


def show(error, name):
    try:
        import traceback

        # Without the frames of this file.
        frame = error.__traceback__
        while frame is not None and not frame.tb_frame.f_code.co_filename.startswith("<cell "):
            frame = frame.tb_next
        traceback.print_exception(type(error), error, frame, file=sys.stderr)
    except BaseException as second:
        os.write(2, ("%s (and its traceback could not be shown: %s)\n" % (
            type(error).__name__, type(second).__name__)).encode())


def run_command(command):
    import subprocess

    shell = "/bin/bash" if os.access("/bin/bash", os.X_OK) else "/bin/sh"
    try:
        done = subprocess.run([shell, "-c", command], stdin=subprocess.DEVNULL)
        return {"end": "exit", "code": done.returncode}
    except BaseException as error:
        os.write(2, ("%s: %s\n" % (type(error).__name__, error)).encode("utf-8", "backslashreplace"))
        return {"end": "exit", "code": 127}


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            pass


main()

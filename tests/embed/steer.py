#!/usr/bin/env python3
"""Re-executes a trace under control through prophet.h with ctypes: steps the first thread, runs another one to an event,
says where all are, and lets it end."""
import ctypes as c
import json
import os
import sys


class Options(c.Structure):
    _fields_ = [("size", c.c_uint32), ("control", c.c_uint32), ("input", c.c_int32), ("output", c.c_int32),
                ("flags", c.POINTER(c.c_char_p)), ("env", c.POINTER(c.c_char_p)), ("dir", c.c_char_p),
                ("replayd", c.c_char_p)]


class Result(c.Structure):
    _fields_ = [("size", c.c_uint32), ("status", c.c_int32), ("signal", c.c_int32), ("identical", c.c_int32),
                ("events", c.c_uint64), ("threads", c.c_uint32), ("processes", c.c_uint32)]


lib = c.CDLL(os.environ.get("PROPHET_LIB", "libprophet.so"))
lib.prophet_reexec_start.argtypes = [c.c_char_p, c.c_void_p, c.POINTER(Options), c.POINTER(c.c_void_p)]
lib.prophet_reexec_status.argtypes = [c.c_void_p, c.POINTER(c.c_char_p)]
lib.prophet_reexec_step.argtypes = lib.prophet_reexec_run_to.argtypes = [c.c_void_p, c.c_char_p, c.c_uint64]
lib.prophet_reexec_wait.argtypes = [c.c_void_p, c.c_int, c.POINTER(Result)]
for name in ("pause", "resume", "free"):
    getattr(lib, "prophet_reexec_" + name).argtypes = [c.c_void_p]
for name in ("error", "report"):
    getattr(lib, "prophet_reexec_" + name).argtypes = [c.c_void_p]
    getattr(lib, "prophet_reexec_" + name).restype = c.c_char_p

sys.stdout.reconfigure(line_buffering=True)  # the program writes there, too
trace, thread, event = sys.argv[1].encode(), sys.argv[2].encode(), int(sys.argv[3])
x = c.c_void_p()
flags = (c.c_char_p * 2)(b"--pause", None)
options = Options(c.sizeof(Options), 1, -1, -1, flags, None, None, None)


def good(r, what):
    if r < 0:
        sys.exit("steer: %s: %s" % (what, lib.prophet_reexec_error(x).decode()))


def show():
    answer = c.c_char_p()
    good(lib.prophet_reexec_status(x, c.byref(answer)), "status")
    for t in json.loads(answer.value)["status"]["threads"]:
        if t["name"] in ("p0", thread.decode()):
            print(t["name"], t["event"])


good(lib.prophet_reexec_start(trace, None, c.byref(options), c.byref(x)), "start")
good(lib.prophet_reexec_step(x, b"p0", 2), "step")
show()
good(lib.prophet_reexec_run_to(x, thread, event), "run to")
show()
if lib.prophet_reexec_run_to(x, thread, 1) < 0:
    print(lib.prophet_reexec_error(x).decode())
good(lib.prophet_reexec_resume(x), "resume")
result = Result(c.sizeof(Result))
good(lib.prophet_reexec_wait(x, -1, c.byref(result)), "wait")
print(lib.prophet_reexec_report(x).decode(), end="")
print("status", result.status, "identical", result.identical)
lib.prophet_reexec_free(x)

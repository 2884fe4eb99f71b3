#!/usr/bin/env python3
"""Reads a trace through prophet.h with ctypes: a small `prophet dump --json`."""
import ctypes as c
import errno
import json
import os
import sys


class Field(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", c.c_void_p), ("length", c.c_uint64), ("value", c.c_int64),
                ("kind", c.c_uint32), ("pad", c.c_uint32)]

    def get(self):
        if self.kind == 2:
            return c.string_at(self.text, self.length).decode("utf-8", "replace")
        return self.value if self.kind == 0 else self.value & (1 << 64) - 1


class Event(c.Structure):
    _fields_ = [("size", c.c_uint32), ("kind", c.c_uint32), ("thread", c.c_char_p), ("uid", c.c_uint32),
                ("process", c.c_uint32), ("pid", c.c_uint32), ("tid", c.c_uint32), ("number", c.c_uint64),
                ("call", c.c_char_p), ("category", c.c_char_p), ("call_id", c.c_uint32), ("flags", c.c_uint32),
                ("begin_ns", c.c_int64), ("end_ns", c.c_int64), ("object", c.c_char_p), ("object_number", c.c_uint64),
                ("object_uid", c.c_uint32), ("error", c.c_int32), ("ret", c.c_int64), ("order", c.c_uint64),
                ("pc", c.c_uint64), ("fields", c.c_uint32), ("pad", c.c_uint32), ("field", c.POINTER(Field))]


CALL, MARK, TIMED = 1, 2, 256

lib = c.CDLL(os.environ.get("PROPHET_LIB", "libprophet.so"))
lib.prophet_open.argtypes = [c.c_char_p, c.POINTER(c.c_void_p)]
lib.prophet_next.argtypes = [c.c_void_p, c.POINTER(Event)]
lib.prophet_trace_error.argtypes = [c.c_void_p]
lib.prophet_trace_error.restype = c.c_char_p
lib.prophet_close.argtypes = [c.c_void_p]


def events(path):
    """Yields the events of a trace; damage goes to stderr, and reading goes on behind it."""
    trace, event = c.c_void_p(), Event()
    try:
        r = lib.prophet_open(path.encode(), c.byref(trace))
        while r >= 0:
            event.size = c.sizeof(event)
            r = lib.prophet_next(trace, event)
            if r == 0:
                return
            if r == 1:
                yield event
            elif r == -errno.EBADMSG:
                print("read:", lib.prophet_trace_error(trace).decode(), file=sys.stderr)
                r = 0
        sys.exit("read: " + lib.prophet_trace_error(trace).decode())
    finally:
        lib.prophet_close(trace)


for e in events(sys.argv[1]):
    line = [("t", e.begin_ns), ("thread", e.thread.decode())]
    if e.kind == MARK:
        line += [("record", "mark"), ("kind", e.call.decode())]
    else:
        line += [("n", e.number), ("call", e.call.decode()), ("class", e.category.decode())]
        if e.object:
            line.append(("object", e.object.decode()))
        line += [("ret", e.ret), ("error", e.error)]
    line += [(f.name.decode(), f.get()) for f in e.field[:e.fields]]
    if e.order:
        line.append(("seq", e.order))
    if e.flags & TIMED:
        line.append(("took", e.end_ns - e.begin_ns))
    print("{" + ",".join(json.dumps(k) + ":" + json.dumps(v) for k, v in line) + "}")

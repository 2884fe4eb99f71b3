// Package client is Prophet's C interface (cabi/prophet.h) for Go, without cgo: marks, starting and stopping the
// recording of this process, reading traces, and re-executing them. Package rig has what tests need.
//
// libprophet.so is the one that was preloaded into this process; else PROPHET_LIB, beside the executable, in ../lib from there, or where the dynamic
// linker finds it. Nothing in this package starts the Go runtime that sleeps in the library.
package client

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library holds the addresses of its functions.
type library struct {
	abi, release, reason, mark, begin, end, recording, start, stop uintptr

	open, next, rewind, about, traceError, close uintptr

	reexec, wait, report, reexecError, pid, socket, ask, free uintptr
}

var load = sync.OnceValues(func() (*library, error) {
	handle := uintptr(purego.RTLD_DEFAULT)
	if _, err := purego.Dlsym(handle, "prophet_abi"); err != nil {
		if handle, err = dlopen(); err != nil {
			return nil, err
		}
	}
	l := &library{}
	for _, f := range []struct {
		name string
		at   *uintptr
	}{
		{"abi", &l.abi}, {"release", &l.release}, {"reason", &l.reason}, {"mark", &l.mark}, {"begin", &l.begin}, {"end", &l.end},
		{"recording", &l.recording}, {"start", &l.start}, {"stop", &l.stop}, {"open", &l.open}, {"next", &l.next},
		{"rewind", &l.rewind}, {"about", &l.about}, {"trace_error", &l.traceError}, {"close", &l.close},
		{"reexec_start", &l.reexec}, {"reexec_wait", &l.wait}, {"reexec_report", &l.report}, {"reexec_error", &l.reexecError},
		{"reexec_pid", &l.pid}, {"reexec_socket", &l.socket}, {"reexec_ask", &l.ask}, {"reexec_free", &l.free},
	} {
		var err error
		if *f.at, err = purego.Dlsym(handle, "prophet_"+f.name); err != nil {
			return nil, fmt.Errorf("libprophet.so is too old: %w", err)
		}
	}
	return l, nil
})

func dlopen() (uintptr, error) {
	for _, path := range places() {
		if _, err := os.Stat(path); err == nil {
			return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
		}
	}
	h, err := purego.Dlopen("libprophet.so", purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, fmt.Errorf("libprophet.so is at none of %v; name it in PROPHET_LIB: %w", places(), err)
	}
	return h, nil
}

// places are where the library may be, by file name.
func places() []string {
	var all []string
	if p := os.Getenv("PROPHET_LIB"); p != "" {
		all = append(all, p)
	}
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		all = append(all, filepath.Join(dir, "libprophet.so"), filepath.Join(dir, "..", "lib", "libprophet.so"))
	}
	return all
}

// Find returns the path of the library that is used when none was preloaded.
func Find() (string, error) {
	for _, path := range places() {
		if _, err := os.Stat(path); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", fmt.Errorf("libprophet.so is at none of %v; name it in PROPHET_LIB", places())
}

// call calls a C function that returns an int. Pointers among its arguments stay where they are until it returns.
//
//go:uintptrescapes
func call(f uintptr, args ...uintptr) int {
	r, _, _ := purego.SyscallN(f, args...)
	return int(int32(r))
}

// callText calls one that returns a text.
//
//go:uintptrescapes
func callText(f uintptr, args ...uintptr) string {
	r, _, _ := purego.SyscallN(f, args...)
	return text(*(**byte)(unsafe.Pointer(&r)))
}

// text copies a C string.
func text(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// cstring is s with the NUL that C wants.
func cstring(s string) *byte { return unsafe.StringData(s + "\x00") }

// Error is a failure that the library reports.
type Error struct {
	Errno syscall.Errno
	Text  string
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Errno }

// Version is that of the library, such as "0.1.0", and of its interface (PROPHET_ABI).
func Version() (release string, abi int, err error) {
	l, err := load()
	if err != nil {
		return "", 0, err
	}
	return callText(l.release), call(l.abi), nil
}

// marks calls one of the three functions for marks, where there is a library and it records.
func marks(which func(*library) uintptr, name string) {
	l, err := load()
	if err != nil || call(l.recording) == 0 {
		return
	}
	s := cstring(name)
	purego.SyscallN(which(l), uintptr(unsafe.Pointer(s)))
}

// Mark puts a point in time into the trace; without a recording it does nothing. It is put into the stream of the
// thread that the goroutine happens to run on.
func Mark(name string) { marks(func(l *library) uintptr { return l.mark }, name) }

// Begin marks the beginning of something, End its end.
func Begin(name string) { marks(func(l *library) uintptr { return l.begin }, name) }

// End marks the end of what Begin began.
func End(name string) { marks(func(l *library) uintptr { return l.end }, name) }

// Recording reports whether this process is being recorded now.
func Recording() bool {
	l, err := load()
	return err == nil && call(l.recording) == 1
}

// Start records everything from now on, in all processes of the run that this one belongs to.
func Start() error { return steer(func(l *library) uintptr { return l.start }) }

// Stop records nothing from now on.
func Stop() error { return steer(func(l *library) uintptr { return l.stop }) }

func steer(which func(*library) uintptr) error {
	l, err := load()
	if err != nil {
		return err
	}
	if r := call(which(l)); r < 0 {
		return &Error{syscall.Errno(-r), callText(l.reason, uintptr(r))}
	}
	return nil
}

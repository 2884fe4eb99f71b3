// Package run starts programs under the recorder and steers runs that are live. The commands `prophet record` and
// `replayd record`, and those that take a pid, share it.
package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/ignored"
	"prophet/runtime/inside"
	"prophet/runtime/recovery"
	"prophet/runtime/shm"
	"prophet/runtime/trace"
)

// Exit statuses of our own, as shells have them.
const (
	StatusOurs     = 125
	StatusNotExec  = 126
	StatusNotFound = 127
)

// Options is how to record.
type Options struct {
	Out    string // the trace; "": <program>.<pid>.prophet here, or under TMPDIR
	Inputs string // none, hash, full, default
	Level  string // off, order, full
	Serial bool
	Chaos  *uint64     // seed of the delays that threads get at their calls; nil: none
	Flight int64       // bytes, 0: all is kept
	Stacks string      // a rate, cpu, or cpu:rate; "": as the library has it
	CPUs   *trace.CPUs // that the program is told of; nil: those that there are
	ASLR   bool        // leave addresses random
	Force  bool        // replace a trace of that name
	Args   []string
	Prog   trace.Progress // while completing

	// Begin is called with the trace's directory before the program starts; what it returns, when the program has ended.
	Begin func(trace string) (end func(), err error)
}

// Result is how the run ended, and how we did.
type Result struct {
	Trace  string
	Status int            // of the program; 128+n when a signal ended it
	Signal syscall.Signal // that ended it, 0 when none
	Live   bool           // other processes of the run go on
	Meta   *trace.Meta    // when the trace is complete
	Err    error          // what went wrong after the program was started
}

// Failed is an error before the program was started, with the status to exit with.
type Failed struct {
	Status int
	Err    error
}

func (f *Failed) Error() string { return f.Err.Error() }
func (f *Failed) Unwrap() error { return f.Err }

func ours(format string, args ...any) error { return &Failed{StatusOurs, fmt.Errorf(format, args...)} }

// FindLibrary is where libprophet.so is: PROPHET_LIB, beside this executable, or in ../lib.
func FindLibrary() (string, error) { return beside("libprophet.so", "PROPHET_LIB", "../lib") }

// FindReplayd is where replayd is: PROPHET_REPLAYD, or beside this executable (which it may be).
func FindReplayd() (string, error) { return beside("replayd", "PROPHET_REPLAYD", "../bin") }

// beside finds a product of ours: where a variable says, beside this executable, or in another directory from there.
func beside(name, variable, other string) (string, error) {
	var tried []string
	try := func(p string) bool {
		tried = append(tried, p)
		st, err := os.Stat(p)
		return err == nil && st.Mode().IsRegular()
	}
	if p := os.Getenv(variable); p != "" {
		if !try(p) {
			return "", fmt.Errorf("%s names %s, which is not a file", variable, p)
		}
		return filepath.Abs(p)
	}
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	dir := filepath.Dir(exe)
	for _, p := range []string{filepath.Join(dir, name), filepath.Join(dir, other, name)} {
		if try(p) {
			return filepath.Clean(p), nil
		}
	}
	return "", fmt.Errorf("%s is not at %s; build it with make, or name it in %s", name, strings.Join(tried, " or "), variable)
}

func find(name string) (string, error) {
	path, err := exec.LookPath(name)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		if path == "" {
			path = name
		}
		return path, nil
	case errors.Is(err, fs.ErrPermission):
		return "", &Failed{StatusNotExec, fmt.Errorf("%s cannot be executed: permission denied", name)}
	}
	return "", &Failed{StatusNotFound, fmt.Errorf("%s: command not found", name)}
}

// target is the absolute path of the trace to make.
func target(o *Options) (string, error) {
	if o.Out == "" {
		name := fmt.Sprintf("%s.%d.prophet", filepath.Base(o.Args[0]), os.Getpid())
		dir, err := os.Getwd()
		if err != nil || unix.Access(dir, unix.W_OK) != nil {
			dir = os.TempDir()
		}
		return filepath.Join(dir, name), nil
	}
	path, err := filepath.Abs(o.Out)
	if err != nil {
		return "", err
	}
	if _, err := os.Lstat(path); err != nil {
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return "", fmt.Errorf("%s cannot be made: %w", o.Out, err)
		}
		return path, nil
	}
	if !o.Force {
		return "", fmt.Errorf("%s exists; use another name, or --force to replace it", o.Out)
	}
	return path, replace(path)
}

// replace removes a trace, and nothing that is not one.
func replace(path string) error {
	t, live, _, err := recovery.Open(path, nil)
	if err != nil {
		return fmt.Errorf("%s is not replaced: %w", path, err)
	}
	t.Close()
	if live {
		return fmt.Errorf("%s is not replaced: it is being recorded", path)
	}
	return os.RemoveAll(path)
}

func environment(lib, path string, o *Options) []string {
	var env []string
	preload := lib
	for _, e := range os.Environ() {
		k, v, _ := strings.Cut(e, "=")
		switch k {
		case "LD_PRELOAD":
			if v != "" {
				preload += ":" + v
			}
		case "PROPHET_TRACE", "PROPHET_OPTIONS", "PROPHET_RUN":
		default:
			env = append(env, e)
		}
	}
	return append(env, Padded([]string{"LD_PRELOAD=" + preload, "PROPHET_TRACE=" + path, options(o)}, 0)...)
}

// envStep is what the variables that a program is started with take together a multiple of, so that those of a
// re-execution, which are others, can take as much: a stack lies below its program's environment.
const envStep = 512

// Padded adds commas to the options, which are the last, so that the variables take the bytes that those of the recorded
// run took; 0: this is to be one.
func Padded(vars []string, bytes int) []string {
	n := Bytes(vars)
	if bytes == 0 {
		bytes = (n + envStep - 1) / envStep * envStep
	}
	if n < bytes {
		vars[len(vars)-1] += strings.Repeat(",", bytes-n)
	}
	return vars
}

// Bytes is what variables take of a program's stack.
func Bytes(vars []string) (n int) {
	for _, v := range vars {
		n += len(v) + 1
	}
	return n
}

// options is what the library is told, as a variable of the environment.
func options(o *Options) string {
	opts := []string{"inputs=" + o.Inputs, "level=" + o.Level}
	if o.Serial {
		opts = append(opts, "serial")
	}
	if o.Chaos != nil {
		opts = append(opts, fmt.Sprintf("chaos=%d", *o.Chaos))
	}
	if o.CPUs != nil {
		opts = append(opts, "cpus="+o.CPUs.String())
	}
	if o.Stacks != "" {
		opts = append(opts, "stacks="+o.Stacks)
	}
	if o.Flight > 0 {
		opts = append(opts, fmt.Sprintf("flight=%d", o.Flight))
	}
	return "PROPHET_OPTIONS=" + strings.Join(opts, ",")
}

// prepare finds what is needed and returns the command to start and the trace that it will make.
func prepare(o *Options) (*exec.Cmd, string, error) {
	if len(o.Args) == 0 {
		return nil, "", ours("no program is named")
	}
	if o.Inputs == "" {
		o.Inputs = "default"
	}
	if o.Level == "" {
		o.Level = "full"
	}
	lib, err := FindLibrary()
	if err != nil {
		return nil, "", ours("%w", err)
	}
	if strings.ContainsAny(lib, ": \t\n") {
		return nil, "", ours("%s: the loader takes no path with a space or a colon; name a copy in PROPHET_LIB", lib)
	}
	exe, err := find(o.Args[0])
	if err != nil {
		return nil, "", err
	}
	path, err := target(o)
	if err != nil {
		return nil, "", ours("%w", err)
	}
	inside.Sweep()
	recovery.Sweep() // of what others left; failing to tidy up is no reason not to record
	return &exec.Cmd{Path: exe, Args: o.Args, Env: environment(lib, path, o)}, path, nil
}

// notStarted is why a program could not be started.
func notStarted(err error) error {
	status := StatusNotExec
	if errors.Is(err, fs.ErrNotExist) {
		status = StatusNotFound
	}
	return &Failed{status, err}
}

// Record runs the program under the recorder and completes its trace. A *Failed says that it was not started.
func Record(o Options) (*Result, error) {
	cmd, path, err := prepare(&o)
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// From before the start, so that none is missed.
	signals := make(chan os.Signal, 64)
	ignored.Keep()
	for _, n := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH, unix.SIGCONT} {
		if !signal.Ignored(n) { // as nohup has it: the program inherits that
			signal.Notify(signals, n)
		}
	}
	defer signal.Stop(signals)
	if o.Begin != nil {
		end, err := o.Begin(path)
		if err != nil {
			return nil, ours("%w", err)
		}
		defer end()
	}
	if err := start(cmd, o.ASLR); err != nil {
		return nil, notStarted(err)
	}
	done := make(chan struct{})
	go pass(signals, cmd.Process, done)
	cmd.Wait() // its error repeats what the state says
	close(done)
	res := ended(path, cmd.ProcessState)
	res.Err = finish(res, o.Prog)
	return res, nil
}

// ended is how a program ended.
func ended(path string, state *os.ProcessState) *Result {
	res := &Result{Trace: path}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		res.Signal = ws.Signal()
		res.Status = 128 + int(res.Signal)
	} else {
		res.Status = state.ExitCode()
	}
	return res
}

// pass hands signals on to the program. What the terminal sends, it sends to the program as well.
func pass(signals <-chan os.Signal, p *os.Process, done <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if !FromTerminal(s) {
				p.Signal(s)
			}
		case <-done:
			return
		}
	}
}

// FromTerminal reports whether a signal that we got may come from the terminal, which has then sent it to the program, too.
func FromTerminal(s os.Signal) bool {
	return (s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGWINCH || s == unix.SIGCONT || s == unix.SIGHUP) && foreground()
}

// foreground reports whether we are in the foreground of a terminal, which then signals the whole group.
func foreground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

var errNothing = errors.New("nothing was recorded: the program did not load libprophet.so (is it static, set-uid, or of another architecture?)")

// finish completes the trace of a run whose first process has ended.
func finish(res *Result, prog trace.Progress) error {
	if _, err := os.Stat(res.Trace); err != nil {
		return errNothing
	}
	o := recovery.Options{Progress: prog}
	if res.Signal != 0 {
		o.Signal, o.TimedOut = trace.SignalName(uint64(res.Signal)), res.Status == StatusTimeout
	} else {
		status := int64(res.Status)
		o.Status = &status
	}
	rep, err := recovery.Recover(res.Trace, o)
	if err != nil {
		return fmt.Errorf("the trace is there but could not be completed: %w", err)
	}
	if err := errors.Join(rep.Errs...); err != nil {
		return err
	}
	if res.Live = rep.Live > 0; res.Live {
		return nil
	}
	t, err := trace.Open(res.Trace)
	if err != nil {
		return err
	}
	defer t.Close()
	res.Meta = t.Meta
	return nil
}

// Die ends this process as the program ended: by the same signal where that leaves no core, else with its status. It does
// not return.
func Die(res *Result) {
	switch res.Signal {
	case 0, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV, unix.SIGXCPU, unix.SIGXFSZ, unix.SIGSYS:
	default:
		shm.Default(res.Signal)
		unix.Kill(unix.Getpid(), res.Signal)
		time.Sleep(time.Second) // it is on its way
	}
	os.Exit(res.Status)
}

package inside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/trace"
)

// Spec is what to start, and in which surroundings.
type Spec struct {
	Plan     *Plan    // what to restore; nil: all is as it is now
	Path     string   // the executable
	Argv     []string // with the name
	Env      []string
	Dir      string
	Files    [3]*os.File     // standard input, output and error; nil ones are our own
	PID      int             // the number that the program had; 0: any
	Pids     string          // a file that shm.MakePids has made, in a shared directory: the program's library chooses ids by it; "": none
	Share    []string        // directories that are the same inside and outside, such as Prophet's shared memory
	Writes   string          // "": removed at the end; WritesReal: no overlay; else a directory for what was written
	Random   bool            // addresses are random
	Syncs    bool            // what the program syncs goes to the disk, and takes the time of that, for programs that are measured
	Limits   *Limits         // nil: as ours
	Handed   *[]trace.Handed // descriptors that it is given besides, and no others; nil: ours
	Outlives bool            // the program goes on when this process is killed
}

// WritesReal is the Writes of a world whose program really writes.
const WritesReal = "real"

// Status is how a program ended.
type Status struct {
	Code   int // exit status; -1 when a signal ended it
	Signal int
}

// Exit is the status as a shell has it: 128 and the number of the signal that ended it.
func (s Status) Exit() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code
}

// Sig is the signal that ended it, 0 when none did.
func (s Status) Sig() syscall.Signal { return syscall.Signal(s.Signal) }

// World is a program that runs inside, with all its children.
type World struct {
	PID    int      // of the program, as it sees it itself
	Notes  []string // what is not as it was in the recorded run
	Run    string   // a directory of the world that is the same inside and outside
	Exact  bool     // process ids can be chosen
	Mapped bool     // it is in a user namespace: ids of others look like the overflow id

	spec    Spec
	base    string
	lock    *os.File
	control *os.File
	cmd     *exec.Cmd
	scheme  *Scheme
	upper   []string
	planted map[string]planted

	ended  chan struct{} // the program
	done   chan struct{} // all of it
	mu     sync.Mutex
	status *Status
	err    error
	closed bool
}

// ErrRefused says that the kernel does not give us namespaces; its text says what can be done.
var ErrRefused = errors.New("namespaces are refused")

const (
	basePrefix   = "prophet-inside."
	makingPrefix = "prophet-making." // until it is locked
	runDir       = "run"
)

// Start builds a world and starts the program in it. When it fails nothing is left.
func Start(ctx context.Context, s Spec) (*World, error) {
	if len(s.Argv) == 0 || s.Path == "" {
		return nil, errors.New("no program is named")
	}
	if s.Writes != "" && s.Writes != WritesReal {
		if err := writable(s.Writes); err != nil {
			return nil, err
		}
	}
	Sweep()
	w := &World{spec: s, ended: make(chan struct{}), done: make(chan struct{})}
	var err error
	if w.base, w.lock, err = makeBase(); err != nil {
		return nil, err
	}
	w.Run = filepath.Join(w.base, runDir)
	if err = w.try(); err == nil {
		go w.watch()
		context.AfterFunc(ctx, w.Kill)
		return w, nil
	}
	w.lock.Close()
	return nil, errors.Join(err, remove(w.base))
}

// writable makes the directory for what is written; it must be empty.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		return fmt.Errorf("%s is not an empty directory", dir)
	}
	return nil
}

// way is one way of building the new root.
type way struct{ descend, memory bool }

// try goes through the ways until the kernel takes one.
func (w *World) try() error {
	super := capable()
	ways := []way{{false, false}, {true, false}, {true, true}}
	if !super {
		ways = ways[1:]
	}
	if w.spec.Writes == WritesReal {
		err := w.attempt(0, way{}, !super, false)
		if errors.Is(err, ErrRefused) {
			err = w.attempt(0, way{}, false, true)
		}
		return err
	}
	var first error
	for i, y := range ways {
		err := w.attempt(i, y, !super, false)
		if err == nil {
			return nil
		}
		var s *stepError
		if first == nil {
			first = err
		}
		if !errors.As(err, &s) || s.step != "layer" && s.step != "upper" {
			return err
		}
	}
	return first
}

func (w *World) attempt(i int, y way, user, plain bool) error {
	real := w.spec.Writes == WritesReal
	o := order{Base: w.base, Upper: filepath.Join(w.base, "u"+strconv.Itoa(i)), Real: real, Syncs: w.spec.Syncs, Plain: plain, User: user, Trusted: !user && initial(), Outlives: w.spec.Outlives,
		Program: program{Path: w.spec.Path, Argv: w.spec.Argv, Env: w.spec.Env, Dir: w.spec.Dir, PID: w.spec.PID, Random: w.spec.Random, Limits: w.spec.Limits, Handed: w.spec.Handed, Ambient: user, Plain: plain, Pids: w.spec.Pids}}
	if p := w.spec.Plan; p != nil && !real {
		o.Restore, o.Kept = p.Restore, p.kept
		o.Work = append(o.Work, p.Work...)
	}
	w.Notes = nil
	if !real {
		mounts, notes, err := mounted()
		if err != nil {
			return err
		}
		w.Notes = append(w.Notes, notes...)
		o.Work = append(o.Work, usual(w.spec.Dir)...)
		var large []string
		if p := w.spec.Plan; p != nil {
			large = p.Large
		}
		o.Scheme = Arrange(SchemeOptions{Mounts: mounts, User: y.descend, Base: w.base, Share: w.shares(), Large: large, Disk: w.spec.Writes != "", List: list})
		for i := range o.Scheme.Layers {
			o.Scheme.Layers[i].Memory = o.Scheme.Layers[i].Memory || y.memory
			o.Scheme.Layers[i].Nested = o.Scheme.Layers[i].Nested && !y.memory
		}
		w.Notes = append(w.Notes, o.Scheme.Notes...)
		if y.memory {
			w.Notes = append(w.Notes, "what is written is kept in memory: no file system on disk here takes it")
		}
	}
	w.scheme = o.Scheme
	w.upper = nil
	if o.Scheme != nil {
		for i, l := range o.Scheme.Layers {
			up := filepath.Join(o.Upper, strconv.Itoa(i), "up")
			if l.Memory {
				up = ""
			}
			w.upper = append(w.upper, up)
		}
	}
	return w.launch(&o)
}

// shares are directories, without their links.
func (w *World) shares() []string {
	var all []string
	for _, s := range w.spec.Share {
		if s, err := filepath.EvalSymlinks(s); err == nil {
			all = append(all, s)
		}
	}
	return all
}

// usual are places where programs write although they belong to others.
func usual(dir string) []string {
	all := []string{"/tmp", "/var/tmp", "/dev/shm", "/run/lock", os.TempDir(), dir}
	if home, err := os.UserHomeDir(); err == nil {
		all = append(all, home)
	}
	var out []string
	for _, d := range all {
		if r, err := filepath.EvalSymlinks(d); err == nil && filepath.IsAbs(r) {
			out = append(out, r)
		}
	}
	return out
}

// launch starts a stage and tells it what to do; it returns when the program runs.
func (w *World) launch(o *order) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.control = os.NewFile(uintptr(pair[0]), "control")
	theirs, err := unix.FcntlInt(uintptr(pair[1]), unix.F_DUPFD, highFD()) // out of the way of what the program inherits
	unix.Close(pair[1])
	if err != nil {
		return err
	}
	lock, err := unix.FcntlInt(w.lock.Fd(), unix.F_DUPFD, highFD())
	if err != nil {
		unix.Close(theirs)
		return err
	}
	if err := w.fork(o, theirs, lock); err != nil {
		w.control.Close()
		return err
	}
	rep, err := w.build(o)
	if err != nil {
		w.control.Close()
		w.cmd.Process.Kill()
		w.cmd.Wait()
		return err
	}
	w.PID = rep.PID
	w.Exact = w.spec.PID <= 1 || rep.PID == w.spec.PID
	w.Mapped = o.User
	if !w.Exact {
		w.Notes = append(w.Notes, fmt.Sprintf("the program's process id is %d, it was %d", rep.PID, w.spec.PID))
	}
	return nil
}

// highFD is where our descriptors begin, where the limit allows it.
func highFD() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur > 516 {
		return 500
	}
	return max(3, int(l.Cur)-16)
}

// fork starts the stage.
func (w *World) fork(o *order, theirs, lock int) error {
	user := o.User
	defer unix.Close(theirs)
	defer unix.Close(lock)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC}
	if o.Plain {
		attr.Cloneflags = 0
	}
	if user {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL,
			unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_RESOURCE, unix.CAP_CHECKPOINT_RESTORE}
	}
	w.cmd = &exec.Cmd{Path: exe, Args: []string{wordStage, "-", strconv.Itoa(theirs), strconv.Itoa(lock)}, Env: os.Environ(), SysProcAttr: attr,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if f := w.spec.Files[0]; f != nil {
		w.cmd.Stdin = f
	}
	if f := w.spec.Files[1]; f != nil {
		w.cmd.Stdout = f
	}
	if f := w.spec.Files[2]; f != nil {
		w.cmd.Stderr = f
	}
	err = w.cmd.Start()
	for _, no := range []error{unix.EPERM, unix.ENOSPC, unix.EINVAL, unix.ENOSYS, unix.EUSERS, unix.EACCES} {
		if errors.Is(err, no) {
			return refused(user, err)
		}
	}
	return err
}

// refused explains what stands in the way, and what to do.
func refused(user bool, err error) error {
	why := ""
	read := func(name string) string {
		b, _ := os.ReadFile("/proc/sys/" + name)
		return strings.TrimSpace(string(b))
	}
	switch {
	case read("user/max_user_namespaces") == "0":
		why = "user.max_user_namespaces is 0; `sysctl user.max_user_namespaces=10000` allows them"
	case read("kernel/unprivileged_userns_clone") == "0":
		why = "`sysctl kernel.unprivileged_userns_clone=1` allows them"
	case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
		why = "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` allows them"
	case user:
		why = "this looks like a container that forbids them; run it with --security-opt seccomp=unconfined, or as root with CAP_SYS_ADMIN"
	default:
		why = "this looks like a container; run it with CAP_SYS_ADMIN"
	}
	return fmt.Errorf("%w (%w): %s; or use --writes real, which writes to the real files and translates process ids", ErrRefused, err, why)
}

// build tells the stage what to do and waits until the program runs.
func (w *World) build(o *order) (*report, error) {
	if err := send(w.control, o); err != nil {
		return nil, fmt.Errorf("the stage has died: %w", err)
	}
	for {
		var r report
		if err := receive(w.control, &r); err != nil {
			return nil, fmt.Errorf("the stage has died: %w", err)
		}
		if r.Error != "" {
			err := error(&stepError{r.Step, errors.New(r.Error)})
			if r.Step == "start" {
				err = errors.New(r.Error)
			}
			return nil, err
		}
		w.Notes = append(w.Notes, r.Notes...)
		if r.Planted != nil {
			w.planted = r.Planted
		}
		if r.PID != 0 {
			return &r, nil
		}
	}
}

// watch follows the world to its end.
func (w *World) watch() {
	for {
		var r report
		if err := receive(w.control, &r); err != nil {
			break
		}
		if r.Ended != nil {
			w.mu.Lock()
			w.status = r.Ended
			w.mu.Unlock()
			close(w.ended)
		}
	}
	w.cmd.Wait()
	w.mu.Lock()
	if w.status == nil {
		w.status = &Status{Code: -1, Signal: int(unix.SIGKILL)}
		w.err = errors.New("the world was killed before its program had ended")
		close(w.ended)
	}
	w.mu.Unlock()
	close(w.done)
}

// Process1 is the pid here of the world's process 1, from which all of it descends: with it all ends.
func (w *World) Process1() int { return w.cmd.Process.Pid }

// Wait waits for the program; its children may go on.
func (w *World) Wait() (Status, error) {
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.status, w.err
}

// Done is closed when no process of the world is left.
func (w *World) Done() <-chan struct{} { return w.done }

// Signal sends a signal to the program.
func (w *World) Signal(s syscall.Signal) error { return send(w.control, ask{int(s)}) }

// Forward passes signals that this process gets to the program, until the world has ended. What the terminal sends it
// sends to the program as well.
func (w *World) Forward(fromTerminal func(os.Signal) bool) {
	c := make(chan os.Signal, 64)
	signal.Notify(c, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH, unix.SIGCONT)
	go func() {
		defer signal.Stop(c)
		for {
			select {
			case s := <-c:
				if !fromTerminal(s) {
					w.Signal(s.(syscall.Signal))
				}
			case <-w.done:
				return
			}
		}
	}()
}

// Stage is the process, as seen from outside, below which all others of the world are.
func (w *World) Stage() int { return w.cmd.Process.Pid }

// Kill ends all processes of the world. It may be called at any time.
func (w *World) Kill() { w.cmd.Process.Kill() }

// Close ends what still runs and removes the world. With a directory for what was written it first puts that there, and
// returns the names; those that the program removed are only told.
func (w *World) Close() ([]Change, error) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, nil
	}
	w.closed = true
	w.mu.Unlock()
	w.Kill()
	<-w.done
	w.control.Close()
	var changes []Change
	var err error
	if dir := w.spec.Writes; dir != "" && dir != WritesReal {
		changes, err = harvest(w.scheme, w.upper, w.planted, dir)
	}
	err = errors.Join(err, remove(w.base))
	w.lock.Close()
	return changes, err
}

// capable reports whether we may mount without a user namespace.
func capable() bool {
	if os.Geteuid() != 0 {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	return unix.Capget(&h, &d[0]) == nil && d[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// initial reports whether we are in the first user namespace.
func initial() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(b))
	return err == nil && len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}

// patience is how long a mount may take to say what it is: the server of one, in user space or on the net, may be gone.
const patience = 3 * time.Second

// mounted is what is mounted where, and notes on what does not answer.
func mounted() (all []Mount, notes []string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	all, err = ParseMounts(f, func(p string) (file, answers bool) {
		type answer struct{ file, dead bool }
		c := make(chan answer, 1)
		go func() {
			st, err := os.Stat(p)
			dead := errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ESTALE) || errors.Is(err, unix.EIO)
			c <- answer{err == nil && !st.IsDir(), dead}
		}()
		select {
		case a := <-c:
			if !a.dead {
				return a.file, true
			}
		case <-time.After(patience):
		}
		notes = append(notes, p+" does not answer and is not there inside")
		return false, false
	})
	return all, notes, err
}

func list(dir string) ([]Entry, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(names))
	for _, n := range names {
		out = append(out, Entry{n.Name(), n.IsDir(), n.Type()&fs.ModeSymlink != 0})
	}
	return out, nil
}

// Live is the file system as it is, for Make.
type Live struct{}

// Lstat is os.Lstat.
func (Live) Lstat(p string) (fs.FileInfo, error) { return os.Lstat(p) }

// Readlink is os.Readlink.
func (Live) Readlink(p string) (string, error) { return os.Readlink(p) }

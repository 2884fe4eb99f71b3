package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/shm"
)

// The words by which a program is told to be a stage; see Main.
const (
	wordStage = "prophet-inside-stage"
	wordInit  = "prophet-inside-init"
)

// Main is to be called first in main of every program that starts worlds: when this process is a stage it does not
// return. A world starts its own executable again.
func Main() {
	if len(os.Args) != 4 || os.Args[0] != wordStage && os.Args[0] != wordInit {
		return
	}
	control, _ := strconv.Atoi(os.Args[2])
	second, _ := strconv.Atoi(os.Args[3])
	unix.CloseOnExec(control)
	unix.CloseOnExec(second)
	if lock, err := strconv.Atoi(os.Args[1]); err == nil { // of process 1: held, never used
		unix.CloseOnExec(lock)
	}
	f := os.NewFile(uintptr(control), "control")
	var err error
	if os.Args[0] == wordStage {
		err = stage(f, second)
	} else {
		err = again(f, second)
	}
	var s *stepError
	if errors.As(err, &s) {
		send(f, report{Error: s.err.Error(), Step: s.step})
	} else if err != nil {
		send(f, report{Error: err.Error()})
	}
	os.Exit(1)
}

// stepError says which step of building a world failed; the world may know another way.
type stepError struct {
	step string
	err  error
}

func (s *stepError) Error() string { return s.step + ": " + s.err.Error() }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &stepError{name, err}
}

// stage builds the new root and goes on in it, as process 1 whose threads have high numbers: low ones may be wanted for
// the program. Where the threads of our runtime have low ones it begins again; see threadsAside.
func stage(control *os.File, lock int) error {
	runtime.LockOSThread()
	var o order
	if err := receive(control, &o); err != nil {
		return err
	}
	var rep report
	if !o.Plain {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return step("mount", fmt.Errorf("making mounts private: %w", err))
		}
	}
	if o.Plain {
		rep.Notes = append(rep.Notes, "namespaces are refused here: process ids are as they come")
	} else if o.Real {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			rep.Notes = append(rep.Notes, fmt.Sprintf("/proc shows the processes outside: %v", err))
		}
	} else {
		b := &builder{order: &o, report: &rep}
		if err := b.build(); err != nil {
			return err
		}
	}
	if err := os.Chdir(o.Program.Dir); err != nil {
		return step("start", err)
	}
	if err := send(control, rep); err != nil {
		return err
	}
	if o.Plain || threadsAside() {
		return process1(control, &o.Program, o.Outlives)
	}
	rest, err := memory(control, &o.Program, o.Outlives)
	if err != nil {
		return err
	}
	setNext(highPID())
	for _, fd := range []int{int(control.Fd()), rest, lock} {
		unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0)
	}
	args := []string{wordInit, strconv.Itoa(lock), strconv.Itoa(int(control.Fd())), strconv.Itoa(rest)}
	return syscall.Exec("/proc/self/exe", args, os.Environ())
}

// again is a stage that has begun again.
func again(control *os.File, rest int) error {
	f := os.NewFile(uintptr(rest), "inside")
	var s second
	if err := receive(f, &s); err != nil {
		return err
	}
	f.Close()
	return process1(control, &s.Program, s.Outlives)
}

// threadsAside reports whether all threads but the first have high numbers already: a command whose C code sets the next
// number before Go starts there (replayd/aside.c) need not begin again, which takes as long as all that a stage does.
func threadsAside() bool {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return false
	}
	first, high := false, highPID()
	for _, e := range list {
		switch tid, err := strconv.Atoi(e.Name()); {
		case err == nil && tid == 1:
			first = true
		case err != nil || tid < high:
			return false
		}
	}
	return first
}

// memory keeps what the second part needs in a file without a name.
func memory(control *os.File, p *program, outlives bool) (int, error) {
	fd, err := unix.MemfdCreate("inside", 0)
	if err != nil {
		return -1, err
	}
	f := os.NewFile(uintptr(fd), "inside")
	if err := send(f, second{*p, outlives}); err != nil {
		return -1, err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return -1, err
	}
	dup, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, int(control.Fd())+1)
	f.Close()
	return dup, err
}

type second struct {
	Program  program
	Outlives bool
}

const lastPID = "/proc/sys/kernel/ns_last_pid"

func setNext(pid int) error { return os.WriteFile(lastPID, []byte(strconv.Itoa(pid-1)), 0) }

// highPID is a number near the end of those that processes may have.
func highPID() int {
	b, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return 2
	}
	most, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return max(2, most-64)
}

// builder makes the new root.
type builder struct {
	*order
	*report
	tmp   string // in memory
	root  string
	upper []string
	work  []string
}

func (b *builder) build() error {
	b.tmp = filepath.Join(b.Base, "t")
	b.root = filepath.Join(b.tmp, "root")
	if err := unix.Mount("prophet", b.tmp, "tmpfs", unix.MS_NOSUID, "mode=0755"); err != nil {
		return step("mount", fmt.Errorf("a file system in memory: %w", err))
	}
	for _, d := range []string{"root", "empty", "flat", "mem"} {
		if err := os.Mkdir(filepath.Join(b.tmp, d), 0o755); err != nil {
			return step("mount", err)
		}
	}
	if err := b.plant(); err != nil {
		return err
	}
	if err := unix.Mount(b.root, b.root, "", unix.MS_BIND, ""); err != nil {
		return step("mount", err)
	}
	for _, a := range b.Scheme.Actions {
		if err := b.act(a); err != nil {
			return err
		}
	}
	return b.enter()
}

// plant makes the upper directories and what is restored in them.
func (b *builder) plant() error {
	xattr := "trusted"
	if !b.Trusted {
		xattr = "user"
	}
	p := &planter{scheme: b.Scheme, user: b.User, xattr: xattr, kept: b.Kept, done: map[string]planted{}}
	for i, l := range b.Scheme.Layers {
		dir := filepath.Join(b.Upper, strconv.Itoa(i))
		if l.Memory {
			dir = filepath.Join(b.tmp, "mem", strconv.Itoa(i))
		}
		up, work := filepath.Join(dir, "up"), filepath.Join(dir, "work")
		if err := errors.Join(os.MkdirAll(up, 0o755), os.MkdirAll(work, 0o755)); err != nil {
			return step("upper", err)
		}
		b.upper, b.work = append(b.upper, up), append(b.work, work)
	}
	p.upper = b.upper
	p.plan(b.Restore, b.order.Work)
	b.Notes = append(b.Notes, p.notes...)
	b.Planted = p.done
	return nil
}

func (b *builder) act(a Action) error {
	at := filepath.Join(b.root, a.At)
	switch a.Kind {
	case ActOverlay:
		return b.overlay(a.Layer, at)
	case ActDir:
		st, err := os.Lstat(a.At)
		if err == nil {
			err = os.MkdirAll(at, st.Mode().Perm()|0o700)
		}
		return step("mount", err)
	case ActLink:
		text, err := os.Readlink(a.At)
		if err == nil {
			err = os.Symlink(text, at)
		}
		return step("mount", err)
	case ActProc:
		b.point(at)
		if err := unix.Mount("proc", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			b.Notes = append(b.Notes, fmt.Sprintf("/proc shows the processes outside: %v", err))
			return step("mount", unix.Mount("/proc", at, "", unix.MS_BIND|unix.MS_REC, ""))
		}
		return nil
	case ActMqueue:
		b.point(at)
		if unix.Mount("mqueue", at, "mqueue", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "") != nil {
			return step("mount", unix.Mount(a.At, at, "", unix.MS_BIND, ""))
		}
		return nil
	case ActMute:
		if err := unix.Mount(os.DevNull, at, "", unix.MS_BIND, ""); err != nil {
			b.Notes = append(b.Notes, fmt.Sprintf("what is said to %s is heard outside: %v", a.At, err))
		}
		return nil
	case ActHide:
		if err := unix.Mount("prophet", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
			return step("mount", err)
		}
		run := filepath.Join(at, runDir)
		if err := os.Mkdir(run, 0o755); err != nil {
			return step("mount", err)
		}
		return step("mount", unix.Mount(filepath.Join(b.Base, runDir), run, "", unix.MS_BIND, ""))
	}
	return b.bind(a, at)
}

// point makes the place for a mount, where the layer has none.
func (b *builder) point(at string) {
	if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		os.MkdirAll(at, 0o755)
	}
}

func (b *builder) bind(a Action, at string) error {
	st, err := os.Stat(a.At)
	if err != nil {
		return nil // gone, or not ours to see
	}
	if st.IsDir() {
		b.point(at)
	} else if _, err := os.Lstat(at); err != nil {
		f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return step("mount", err)
		}
		f.Close()
	}
	if err := unix.Mount(a.At, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		b.Notes = append(b.Notes, fmt.Sprintf("%s is not there inside: %v", a.At, err))
		return nil
	}
	if a.Kind == ActBind {
		return nil
	}
	if err := readOnly(at); err != nil {
		return step("mount", fmt.Errorf("%s cannot be made read-only: %w", a.At, err))
	}
	return nil
}

// readOnly makes a mount read-only; what its options were it keeps, as an ordinary user must.
func readOnly(at string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return err
	}
	flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY)
	for _, f := range []struct{ has, keep int64 }{{unix.ST_NOSUID, unix.MS_NOSUID}, {unix.ST_NODEV, unix.MS_NODEV}, {unix.ST_NOEXEC, unix.MS_NOEXEC},
		{unix.ST_NOATIME, unix.MS_NOATIME}, {unix.ST_NODIRATIME, unix.MS_NODIRATIME}, {unix.ST_RELATIME, unix.MS_RELATIME}} {
		if int64(st.Flags)&f.has != 0 {
			flags |= uintptr(f.keep)
		}
	}
	return unix.Mount("", at, "", flags, "")
}

// overlay mounts a layer. Where its upper directory lies below the lower one the kernel sees a ring; an overlay without
// an upper directory in between breaks it.
func (b *builder) overlay(i int, at string) error {
	l := b.Scheme.Layers[i]
	lower := l.At
	mark := ",userxattr"
	if b.Trusted {
		mark = ""
	}
	b.point(at)
	if l.Nested {
		flat := filepath.Join(b.tmp, "flat", strconv.Itoa(i))
		if err := os.Mkdir(flat, 0o755); err != nil {
			return step("mount", err)
		}
		opts := "lowerdir=" + escape(lower) + ":" + escape(filepath.Join(b.tmp, "empty")) + mark
		if err := unix.Mount("prophet", flat, "overlay", 0, opts); err != nil {
			return step("layer", fmt.Errorf("%s: %w", l.At, err))
		}
		lower = flat
	}
	opts := "lowerdir=" + escape(lower) + ",upperdir=" + escape(b.upper[i]) + ",workdir=" + escape(b.work[i]) + mark
	var tries []string
	add := func(o string) {
		if !b.Syncs { // the end of a world does not wait for the disk then. Old kernels do not know the word
			tries = append(tries, o+",volatile")
		}
		tries = append(tries, o)
	}
	if b.Trusted { // directories can then be renamed as they are
		add(opts + ",redirect_dir=on")
	}
	add(opts)
	var err error
	for _, o := range tries {
		if err = unix.Mount("prophet", at, "overlay", 0, o); err == nil {
			return nil
		}
	}
	if !l.Nested && l.At != "/" && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ELOOP)) && !b.essential(l.At) {
		b.Notes = append(b.Notes, fmt.Sprintf("%s takes no overlay (%v) and is read-only inside", l.At, err))
		return b.bind(Action{Kind: ActBindRead, At: l.At}, at)
	}
	return step("layer", fmt.Errorf("%s: %w", l.At, err))
}

// essential reports whether the run worked there, so that read-only will not do.
func (b *builder) essential(at string) bool {
	for _, w := range b.order.Work {
		if i, _ := b.Scheme.LayerOf(w); i >= 0 && b.Scheme.Layers[i].At == at {
			return true
		}
	}
	return false
}

var escaper = strings.NewReplacer(`\`, `\\`, ",", `\,`, ":", `\:`)

func escape(path string) string { return escaper.Replace(path) }

// enter makes the new root the root.
func (b *builder) enter() error {
	if err := os.Chdir(b.root); err != nil {
		return step("mount", err)
	}
	if b.User && len(b.Scheme.Layers) > 0 && b.Scheme.Layers[0].At != "/" {
		unix.Chmod(".", 0o555) // ours now, and was not
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return step("mount", fmt.Errorf("pivot_root: %w", err))
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return step("mount", err)
	}
	return step("mount", os.Chdir("/"))
}

// process1 starts the program and waits for all processes of the world.
func process1(control *os.File, p *program, outlives bool) error {
	runtime.LockOSThread()
	signals := make(chan os.Signal, 64)
	var ours []os.Signal // what comes from the terminal is for the program
	for i := 1; i < 32; i++ {
		switch n := syscall.Signal(i); {
		case n == unix.SIGCHLD || n == unix.SIGURG:
		case p.Limits.ignores(n):
			signal.Ignore(n)
		default:
			ours = append(ours, n)
		}
	}
	signal.Notify(signals, ours...)
	go func() {
		for range signals {
		}
	}()
	if p.Plain {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	} else if p.Pids != "" {
		page, err := shm.OpenPids(p.Pids)
		if err != nil {
			return step("start", err)
		}
		fd, err := unix.Open(lastPID, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return step("start", err)
		}
		go func() {
			runtime.LockOSThread()
			page.Serve(fd)
		}()
	}
	spare()
	files, notes := p.files()
	pid, err := begin(p, files)
	if err != nil {
		return step("start", err)
	}
	if err := send(control, report{PID: pid, Notes: notes}); err != nil && !outlives {
		return err
	}
	go listen(control, pid, outlives)
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			os.Exit(0)
		case got == pid && (ws.Exited() || ws.Signaled()):
			send(control, report{Ended: &Status{Code: ws.ExitStatus(), Signal: int(max(0, ws.Signal()))}})
		}
	}
}

// spare makes the runtime have threads in store: one that it made later could take a number that the program wants.
func spare() {
	debug.SetGCPercent(-1) // there is next to no garbage
	var here, gone sync.WaitGroup
	here.Add(8) // before the first of them waits
	gone.Add(8)
	for range 8 {
		go func() {
			runtime.LockOSThread() // until all are here, each keeps a thread
			here.Done()
			here.Wait()
			runtime.UnlockOSThread()
			gone.Done()
		}()
	}
	gone.Wait()
	// On a busy machine they may be on their way there still, and a thread that is not in store is made anew.
	for tries := 0; tries < 100 && !othersAsleep(); tries++ {
		time.Sleep(200 * time.Microsecond)
	}
}

// othersAsleep reports whether all threads but this one sleep.
func othersAsleep() bool {
	list, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return true
	}
	for _, e := range list {
		b, err := os.ReadFile("/proc/self/task/" + e.Name() + "/stat")
		if _, state, ok := bytes.Cut(b, []byte(") ")); err == nil && ok && state[0] != 'S' && e.Name() != strconv.Itoa(unix.Gettid()) {
			return false
		}
	}
	return true
}

// evict ends a thread of the runtime's: one to which a goroutine is locked ends with it. The others are kept busy until
// it is that one's turn.
func evict(tid int) {
	for range 8 {
		var looked, held sync.WaitGroup
		held.Add(1)
		found := false
		for range 24 {
			looked.Add(1)
			go func() {
				runtime.LockOSThread()
				if unix.Gettid() == tid {
					found = true
					looked.Done()
					return
				}
				looked.Done()
				held.Wait()
				runtime.UnlockOSThread()
			}()
		}
		looked.Wait()
		held.Done()
		if found {
			return
		}
	}
}

// listen does what the world asks; when it is gone all ends, or goes on as was ordered.
func listen(control *os.File, pid int, outlives bool) {
	for {
		var a ask
		if err := receive(control, &a); err != nil {
			if !outlives {
				os.Exit(1)
			}
			return
		}
		unix.Kill(pid, unix.Signal(a.Signal))
	}
}

const noRandom = 0x0040000 // ADDR_NO_RANDOMIZE

// SameAddresses makes what this thread starts from now on have the same addresses in each run; the result undoes it.
// Where that is refused (some containers do) programs start as usual.
func SameAddresses() (undo func(), err error) {
	was, _, e := unix.Syscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
	if e == 0 {
		_, _, e = unix.Syscall(unix.SYS_PERSONALITY, was|noRandom, 0, 0)
	}
	if e != 0 {
		return func() {}, fmt.Errorf("personality: %w", e)
	}
	return func() { unix.Syscall(unix.SYS_PERSONALITY, was, 0, 0) }, nil
}

// begin starts the program under the number that it had. It is stopped before its first instruction until that is
// known to be so.
func begin(p *program, files []uintptr) (int, error) {
	if !p.Random {
		undo, _ := SameAddresses()
		defer undo()
	}
	unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	attr := &syscall.ProcAttr{Dir: p.Dir, Env: p.Env, Files: files, Sys: &syscall.SysProcAttr{Ptrace: true}}
	if p.Ambient {
		attr.Sys.AmbientCaps = []uintptr{unix.CAP_CHECKPOINT_RESTORE}
	}
	if p.Plain {
		attr.Sys.Pdeathsig = unix.SIGKILL
	}
	p.Limits.before()
	for tries := 0; ; tries++ {
		if p.Plain || setNext(max(2, p.PID)) != nil {
			tries = triesMax
		}
		pid, err := syscall.ForkExec(p.Path, p.Argv, attr)
		if err == unix.EPERM && attr.Sys.Ptrace { // tracing is refused here
			attr.Sys.Ptrace = false
			continue
		}
		if err != nil {
			return 0, &os.PathError{Op: "exec", Path: p.Path, Err: err}
		}
		if !attr.Sys.Ptrace {
			p.Limits.after(pid)
			return pid, nil
		}
		var ws unix.WaitStatus
		if _, err := unix.Wait4(pid, &ws, unix.WALL, nil); err != nil {
			return 0, err
		}
		if p.PID > 1 && pid != p.PID && tries < triesMax {
			unix.Kill(pid, unix.SIGKILL)
			unix.Wait4(pid, &ws, unix.WALL, nil)
			if unix.Tgkill(os.Getpid(), p.PID, 0) == nil { // one that the runtime had ordered before spare came too late
				setNext(highPID())
				evict(p.PID)
				for wait := 0; wait < 100 && unix.Tgkill(os.Getpid(), p.PID, 0) == nil; wait++ { // it may be on its way to its end still
					time.Sleep(200 * time.Microsecond)
				}
			}
			continue
		}
		if p.PID > 1 {
			setNext(highPID()) // a thread that the runtime makes from now on takes no number next to that, which the program will want
		}
		p.Limits.after(pid)
		return pid, unix.PtraceDetach(pid)
	}
}

const triesMax = 32

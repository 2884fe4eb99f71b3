package far

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"prophet/cabi"
	"prophet/replayd/kernels"
	"prophet/runtime/calibrate"
	"prophet/runtime/cgroup"
	"prophet/runtime/recovery"
	"prophet/runtime/run"
	"prophet/runtime/scratch"
	"prophet/runtime/shm"
	"prophet/runtime/target"
)

// server is the one that has the connection. Its goroutines: run reads requests; beat; one a request that takes long; one a
// stream of what is being issued.
type server struct {
	wire   *target.Wire
	dir    string            // private
	root   *os.Root          // dir/files: what home names, and where issues run
	put    map[string]string // name: SHA-256
	ownShm bool              // there was no directory for rings before us
	aside  atomic.Int32      // requests that are answered beside others

	receiving *receiver

	mu        sync.Mutex
	issue     *issue // what is being issued; nil: nothing
	measuring bool   // nothing is issued meanwhile, and the other way round
	ending    bool   // how it ended is no result
}

// issue is a `replayd issue` that runs.
type issue struct {
	in      *os.File
	process *os.Process
	stopped bool
}

// receiver is a file that comes.
type receiver struct {
	id   uint32
	name string
	sum  string
	left int64
	f    *os.File
	hash hash.Hash
}

// Serve is the server: dir is the private directory, group the directory of the quota's control group or "", from that of the
// group before. Descriptor 3 ends when the keeper does. It returns when the connection has ended.
func Serve(dir, group, from string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	files := filepath.Join(dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	s := &server{wire: target.NewWire(os.Stdin, os.Stdout), dir: dir, put: map[string]string{}}
	if s.root, err = os.OpenRoot(files); err != nil {
		return err
	}
	_, err = os.Stat(shm.Dir())
	s.ownShm = errors.Is(err, fs.ErrNotExist)
	var once sync.Once
	end := func() { once.Do(func() { s.cleanup(files) }) }
	// Ended from outside. The keeper removes the directory and the group.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	// Not ignored, or what we start would ignore them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		end()
		os.Exit(1)
	}()
	go func() { // without a keeper
		drain(os.NewFile(3, "keeper"))
		end()
		if group != "" {
			cgroup.Group{Dir: group, From: from}.Leave()
		}
		remove(dir)
		os.Exit(1)
	}()
	stop := make(chan struct{})
	go s.wire.Beat(stop, func() {
		end()
		os.Exit(1)
	})
	err = s.run()
	close(stop)
	end()
	if errors.Is(err, io.EOF) {
		return nil // home has gone without a word: that is home's to say
	}
	return err
}

// cleanup ends what is issued, and removes what it made, also in shared memory.
func (s *server) cleanup(files string) {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	EndDescendants()
	remove(files)
	recovery.Sweep()
	if s.ownShm {
		os.Remove(shm.Dir()) // when it is empty
	}
}

func (s *server) run() error {
	if err := s.wire.Say(target.Banner + "\n"); err != nil {
		return err
	}
	if _, err := s.wire.Await(target.Greeting); err != nil {
		return err
	}
	for {
		h, payload, err := s.wire.Read()
		if err != nil {
			return err
		}
		if h.Op == target.OpBye {
			s.cleanup(s.root.Name())
			s.wire.Write(target.Header{Op: target.OpOK, ID: h.ID}, nil)
			return nil
		}
		if err := s.request(h, payload); err != nil {
			return err
		}
	}
}

// ok and fail are last answers.
func (s *server) ok(id uint32) error {
	return s.wire.Write(target.Header{Op: target.OpOK, ID: id}, nil)
}

func (s *server) fail(id uint32, err error) error {
	h := target.Header{Op: target.OpFail, ID: id, Text: clip(err.Error())}
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		h.Code = target.CodeFull
	case errors.Is(err, fs.ErrNotExist):
		h.Code = target.CodeAbsent
	}
	return s.wire.Write(h, nil)
}

func clip(s string) string {
	if len(s) > target.LineMax {
		s = s[:target.LineMax]
	}
	return strings.ToValidUTF8(s, "?")
}

// answer is the last answer of a request that err is the outcome of.
func (s *server) answer(id uint32, err error) error {
	if err != nil {
		return s.fail(id, err)
	}
	return s.ok(id)
}

// request answers a frame; its own error is one of the connection.
func (s *server) request(h target.Header, payload []byte) error {
	switch h.Op {
	case target.OpBeat:
		return nil
	case target.OpHello:
		return s.beside(h, s.hello)
	case target.OpPut:
		return s.begin(h)
	case target.OpData:
		return s.data(h.ID, payload)
	case target.OpGet:
		return s.beside(h, s.get)
	case target.OpIssue:
		return s.start(h)
	case target.OpTell:
		return s.answer(h.ID, s.tell(h.Text))
	case target.OpStop:
		return s.answer(h.ID, s.stop())
	case target.OpClean:
		return s.answer(h.ID, s.clean())
	}
	return s.fail(h.ID, fmt.Errorf("%.40q is no operation that %s %s knows", h.Op, target.Banner, cabi.Version))
}

// beside answers a request that takes long beside others, a few at most.
func (s *server) beside(h target.Header, do func(target.Header)) error {
	const most = 8
	if s.aside.Add(1) > most {
		s.aside.Add(-1)
		return s.fail(h.ID, fmt.Errorf("more than %d requests at once", most))
	}
	go func() {
		do(h)
		s.aside.Add(-1)
	}()
	return nil
}

func (s *server) hello(h target.Header) {
	i := &target.Info{Arch: runtime.GOARCH, CPUs: run.CPUs(), Dir: s.dir, Prophet: cabi.Version}
	if groups, err := cgroup.Own(); err == nil {
		i.Quota = cgroup.Limit(groups)
	}
	i.Online, i.Configured = kernels.Processors()
	var err error
	if i.Filesystem, i.Free, err = kernels.Space(s.dir); err == nil && h.Calibrate {
		i.Machine, err = s.calibrate(h.ID)
	}
	if err != nil {
		s.fail(h.ID, err)
		return
	}
	s.wire.Write(target.Header{Op: target.OpOK, ID: h.ID, Info: i}, nil)
}

// calibrate measures in a process of its own, so that nothing of ours stands beside the kernels.
func (s *server) calibrate(id uint32) (*calibrate.Machine, error) {
	s.mu.Lock()
	busy := s.issue != nil || s.measuring
	s.measuring = s.measuring || !busy
	s.mu.Unlock()
	if busy {
		return nil, errBusy
	}
	defer func() {
		s.mu.Lock()
		s.measuring = false
		s.mu.Unlock()
	}()
	cmd, err := self("calibrate", "--dir", s.root.Name())
	if err != nil {
		return nil, err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var last json.RawMessage
	for d := json.NewDecoder(out); ; {
		var v struct {
			Done, All int64
			Machine   json.RawMessage
		}
		if d.Decode(&v) != nil {
			break
		}
		if v.Machine != nil {
			last = v.Machine
		} else {
			s.wire.Write(target.Header{Op: target.OpLine, ID: id, Text: fmt.Sprintf("%d of %d", v.Done, v.All)}, nil)
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("calibrating: %w: %s", err, clip(strings.TrimSpace(errs.String())))
	}
	return calibrate.Parse(last)
}

// self is a command of this very file.
func self(args ...string) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(exe, args...), nil
}

// begin answers the question whether a file is there, or begins to receive it. Files come one at a time.
func (s *server) begin(h target.Header) error {
	if s.receiving != nil {
		return fmt.Errorf("%w: a file in the middle of another", target.ErrProtocol)
	}
	if !flat(h.Name) || len(h.Sum) != 2*sha256.Size {
		return s.fail(h.ID, fmt.Errorf("%.40q is no name for a file, or its sum is none", h.Name))
	}
	if h.Size == 0 && !h.Have {
		return s.wire.Write(target.Header{Op: target.OpOK, ID: h.ID, Have: s.put[h.Name] == h.Sum}, nil)
	}
	delete(s.put, h.Name)
	r := &receiver{id: h.ID, name: h.Name, sum: h.Sum, left: h.Size, hash: sha256.New()}
	s.receiving = r
	// Under another name until it is whole, and its space is taken first: a full disk is found before the file is sent.
	var err error
	if r.f, err = s.root.OpenFile(partName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err == nil && h.Size > 0 {
		if e := unix.Fallocate(int(r.f.Fd()), 0, 0, h.Size); e != nil && !errors.Is(e, unix.EOPNOTSUPP) {
			err = fmt.Errorf("%s: %w", h.Name, e)
		}
	}
	return s.received(err)
}

// The name of a file that is not whole yet.
const partName = ".part"

// flat reports whether a name is one of a file in the directory itself, and not hidden.
func flat(name string) bool {
	return name != "" && len(name) < 200 && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\x00")
}

func (s *server) data(id uint32, b []byte) error {
	r := s.receiving
	if r == nil || r.id != id {
		return nil // of a file that was refused while it was on its way
	}
	if int64(len(b)) > r.left {
		return fmt.Errorf("%w: more of a file than there is", target.ErrProtocol)
	}
	r.left -= int64(len(b))
	r.hash.Write(b)
	_, err := r.f.Write(b)
	return s.received(err)
}

// received goes on with a file, or ends it: it is whole, or err says why it never will be.
func (s *server) received(err error) error {
	r := s.receiving
	if err == nil && r.left > 0 {
		return nil
	}
	s.receiving = nil
	if r.f != nil {
		err = errors.Join(err, r.f.Close())
	}
	if err == nil && hex.EncodeToString(r.hash.Sum(nil)) != r.sum {
		err = fmt.Errorf("%s came with other content than was sent", r.name)
	}
	if err == nil {
		err = s.root.Rename(partName, r.name)
	}
	if err != nil {
		s.root.Remove(partName)
		return s.fail(r.id, err)
	}
	s.put[r.name] = r.sum
	return s.ok(r.id)
}

// get sends a file, or a directory as a tar.
func (s *server) get(h target.Header) {
	name := filepath.Clean(h.Name)
	st, err := s.root.Lstat(name)
	if err != nil {
		s.fail(h.ID, err)
		return
	}
	if !st.IsDir() && !st.Mode().IsRegular() {
		s.fail(h.ID, fmt.Errorf("%s is neither a file nor a directory", name))
		return
	}
	if s.wire.Write(target.Header{Op: target.OpLine, ID: h.ID, Tree: st.IsDir(), Size: st.Size()}, nil) != nil {
		return
	}
	out := bufio.NewWriterSize(sender{s, h.ID}, target.PayloadMax)
	if st.IsDir() {
		err = s.tar(out, name)
	} else {
		var f *os.File
		if f, err = s.root.Open(name); err == nil {
			_, err = io.Copy(struct{ io.Writer }{out}, f)
			f.Close()
		}
	}
	if err == nil {
		err = out.Flush()
	}
	s.answer(h.ID, err)
}

// sender sends what is written as parts of a file.
type sender struct {
	s  *server
	id uint32
}

func (w sender) Write(b []byte) (int, error) {
	for sent := 0; sent < len(b); {
		n := min(len(b)-sent, target.PayloadMax)
		if err := w.s.wire.Write(target.Header{Op: target.OpData, ID: w.id}, b[sent:sent+n]); err != nil {
			return sent, err
		}
		sent += n
	}
	return len(b), nil
}

func (s *server) tar(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	err := fs.WalkDir(s.root.FS(), filepath.ToSlash(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		switch {
		case st.IsDir():
			return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o700})
		case !st.Mode().IsRegular():
			return nil // sockets and the like are of no use elsewhere
		}
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: st.Size(), Mode: 0o600}); err != nil {
			return err
		}
		f, err := s.root.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyN(t, f, st.Size())
		return err
	})
	return errors.Join(err, t.Close())
}

var errBusy = errors.New("something is being issued or measured")

// start issues. One at a time: two would measure each other.
func (s *server) start(h target.Header) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.issue != nil || s.measuring {
		return s.fail(h.ID, errBusy)
	}
	cmd, err := self(append([]string{"issue"}, h.Args...)...)
	if err != nil {
		return s.fail(h.ID, err)
	}
	cmd.Dir = s.root.Name()
	cmd.Env = append(os.Environ(), "TMPDIR="+cmd.Dir)
	errs := &end{}
	cmd.Stderr = errs
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s.fail(h.ID, err)
	}
	its, in, err := os.Pipe()
	if err != nil {
		return s.fail(h.ID, err)
	}
	defer its.Close()
	cmd.Stdin = its
	i := &issue{in: in}
	s.issue = i
	started := make(chan error)
	go func() {
		// The signal at the parent's death comes when the thread that started the child ends: it is locked until then.
		runtime.LockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		i.process = cmd.Process
		started <- nil
		lines := make(chan struct{})
		go func() { s.lines(h.ID, out); close(lines) }()
		state, _ := cmd.Process.Wait()
		seconds := time.Since(begin).Seconds()
		s.mu.Lock()
		s.issue = nil
		stopped, ending := i.stopped, s.ending
		// Nothing that it left may disturb the next one. Under the lock, so that no next one is taken for it.
		EndDescendants()
		s.leftovers()
		s.mu.Unlock()
		<-lines
		cmd.Wait() // its streams
		in.Close()
		if ending {
			return
		}
		r := &target.Result{Status: -1, Seconds: seconds, Stderr: clip(string(errs.b)), Stopped: stopped}
		if state == nil { // somebody else heard how it ended: we are being ended
			r.Signal = "SIGKILL"
		} else if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
			r.Signal = unix.SignalName(w.Signal())
		} else {
			r.Status = state.ExitCode()
		}
		s.wire.Write(target.Header{Op: target.OpOK, ID: h.ID, Result: r}, nil)
	}()
	if err := <-started; err != nil {
		s.issue = nil
		in.Close()
		return s.fail(h.ID, err)
	}
	return nil
}

// lines sends what the issuer prints, line by line; what is too long for a line comes in parts.
func (s *server) lines(id uint32, out io.Reader) {
	r := bufio.NewReaderSize(out, target.LineMax)
	for {
		line, err := r.ReadSlice('\n')
		if text := strings.TrimRight(string(line), "\n"); len(line) > 0 {
			if s.wire.Write(target.Header{Op: target.OpLine, ID: id, Text: strings.ToValidUTF8(text, "?")}, nil) != nil {
				drain(out)
				return
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// end keeps the last part of what is written.
type end struct{ b []byte }

func (e *end) Write(b []byte) (int, error) {
	const most = 16 << 10
	e.b = append(e.b, b...)
	if len(e.b) > 2*most {
		e.b = append([]byte(nil), e.b[len(e.b)-most:]...)
	}
	return len(b), nil
}

func (s *server) tell(line string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.issue == nil {
		return errors.New("nothing is being issued")
	}
	if strings.ContainsAny(line, "\n\r\x00") {
		return errors.New("more than a line")
	}
	s.issue.in.SetWriteDeadline(time.Now().Add(time.Second)) // it may not read
	_, err := io.WriteString(s.issue.in, line+"\n")
	return err
}

// stop ends what is being issued, all of its processes; its own answer says how it ended. Nothing being issued is good, too:
// it may have ended meanwhile.
func (s *server) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.issue != nil {
		s.issue.stopped = true
		s.issue.process.Kill() // its waiter ends the rest
	}
	return nil
}

// leftovers removes the directories of an issue that was ended before it could: their files may fill the disk.
func (s *server) leftovers() {
	list, _ := fs.ReadDir(s.root.FS(), ".")
	for _, e := range list {
		if e.IsDir() && (strings.HasPrefix(e.Name(), scratch.Issue) || strings.HasPrefix(e.Name(), scratch.Program)) {
			remove(filepath.Join(s.root.Name(), e.Name()))
		}
	}
}

func (s *server) clean() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.issue != nil || s.measuring {
		return errBusy
	}
	list, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range list {
		if _, kept := s.put[e.Name()]; !kept {
			remove(filepath.Join(s.root.Name(), e.Name()))
		}
	}
	return nil
}

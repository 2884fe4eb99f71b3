package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"prophet/replayd/proto"
)

// writeLimit is how long a client may take to read an answer.
const writeLimit = 10 * time.Second

// Server is a socket that is served.
type Server struct {
	l     *net.UnixListener
	world World
	path  string

	steer  sync.Mutex // who changes the world
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	wg     sync.WaitGroup
}

// Listen makes the socket, for this user alone, and serves the world on it until Close. A socket that nobody listens at
// any more is replaced; anything else of that name is not.
func Listen(path string, w World) (*Server, error) {
	if err := clear(path); err != nil {
		return nil, err
	}
	// The mode must be right from the start: between bind and chmod anybody could connect.
	was := unix.Umask(0o177)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	unix.Umask(was)
	if err != nil {
		return nil, fmt.Errorf("--control %s: %w", path, err)
	}
	s := &Server{l: l, world: w, path: path, conns: map[net.Conn]bool{}}
	s.wg.Add(1)
	go s.accept()
	return s, nil
}

func clear(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if st.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("--control %s: there is a file of that name that is no socket; use another name", path)
	}
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return fmt.Errorf("--control %s: another daemon listens there; use another name", path)
	}
	return os.Remove(path)
}

// Close ends all connections, once their answers are written, and removes the socket.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	err := s.l.Close()
	for c := range s.conns {
		c.SetReadDeadline(time.Now())
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors, perhaps
			continue
		}
		s.mu.Lock()
		full := len(s.conns) >= proto.Connections || s.closed
		if !full {
			s.conns[c] = true
			s.wg.Add(1)
		}
		s.mu.Unlock()
		switch {
		case full:
			refuse(c, proto.Errorf(proto.Failed, "%d connections are open already", proto.Connections))
		case !ours(c):
			s.drop(c, proto.Errorf(proto.Failed, "only the user who started the daemon may control it"))
		default:
			go s.serve(c)
		}
	}
}

// ours reports whether the other end is a process of our user, as the kernel says.
func ours(c *net.UnixConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	good := false
	raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		good = err == nil && int(cred.Uid) == os.Geteuid()
	})
	return good
}

func refuse(c net.Conn, err error) {
	c.SetWriteDeadline(time.Now().Add(writeLimit))
	write(c, proto.Refuse(0, err))
	c.Close()
}

func (s *Server) drop(c net.Conn, err error) {
	refuse(c, err)
	s.gone(c)
}

func (s *Server) gone(c net.Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	s.wg.Done()
}

func write(c net.Conn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.SetWriteDeadline(time.Now().Add(writeLimit))
	_, err = c.Write(append(b, '\n'))
	return err
}

// serve answers one connection's requests in order. Lines are read ahead by one, so that a client that goes is noticed
// while its request waits.
func (s *Server) serve(c net.Conn) {
	defer s.gone(c)
	defer c.Close()
	if write(c, s.world.Hello()) != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type line struct {
		b   []byte
		err error
	}
	lines := make(chan line)
	go func() {
		defer close(lines)
		defer cancel()
		sc := bufio.NewScanner(c)
		sc.Buffer(make([]byte, 4096), proto.RequestMax+1)
		for sc.Scan() {
			select {
			case lines <- line{b: append([]byte(nil), sc.Bytes()...)}:
			case <-ctx.Done():
				return
			}
		}
		if errors.Is(sc.Err(), bufio.ErrTooLong) {
			select {
			case lines <- line{err: proto.Errorf(proto.BadRequest, "the request is longer than %d bytes", proto.RequestMax)}:
			case <-ctx.Done():
			}
		}
	}()
	for l := range lines {
		if l.err != nil {
			write(c, proto.Refuse(0, l.err))
			return
		}
		r, err := proto.ParseRequest(l.b)
		var a proto.Answer
		if err == nil {
			a, err = s.do(ctx, r)
		}
		if err != nil {
			a = proto.Refuse(r.ID, err)
		}
		a.ID = r.ID
		if write(c, a) != nil {
			return
		}
	}
}

func (s *Server) do(ctx context.Context, r proto.Request) (a proto.Answer, err error) {
	a.OK = true
	switch r.Do {
	case proto.DoStatus:
		a.Status, err = s.world.Status()
		return a, err
	case proto.DoClock:
		a.Clock, err = s.world.Clock()
		return a, err
	}
	s.steer.Lock()
	defer s.steer.Unlock()
	switch r.Do {
	case proto.DoPause:
		a.Stop, err = s.world.Pause(ctx)
	case proto.DoResume:
		a.Stop, err = s.world.Resume(ctx)
	case proto.DoContinue:
		a.Stop, err = s.world.Continue(ctx)
	case proto.DoRunTo:
		a.Stop, err = s.world.RunTo(ctx, r.Thread, r.Event, r.TimeNS, r.Mark)
	case proto.DoStep:
		a.Stop, err = s.world.Step(ctx, r.Thread, max(r.Count, 1))
	case proto.DoBreak:
		a.Stop, err = s.world.Break(ctx, r.Object, r.Call, r.Thread, r.Clear)
	case proto.DoDetach:
		a.Stop, err = s.world.Detach(ctx)
	}
	return a, err
}

var _ io.Closer = (*Server)(nil)

// Package client controls a run through replayd's socket (package proto), for test rigs and for `prophet ctl`.
//
//	c, err := client.Dial("/tmp/app.sock")
//	…
//	defer c.Close()
//	stop, err := c.Pause(ctx)
//	status, err := c.Status(ctx)
//
// A Client may be used by several goroutines; its requests are made one after the other. When a context ends while an
// answer is awaited, the connection is closed, which gives up what was asked.
package client

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
	"syscall"
	"time"

	"prophet/replayd/proto"
)

// Client is a connection to a daemon.
type Client struct {
	mu    sync.Mutex
	c     net.Conn
	sc    *bufio.Scanner
	id    uint64
	hello proto.Hello
}

// Dial connects to a daemon's socket.
func Dial(socket string) (*Client, error) {
	c, err := net.DialTimeout("unix", socket, 5*time.Second)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("there is no socket %s; start replayd with --control %s", socket, socket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("nobody listens at %s: its replayd has ended", socket)
	case err != nil:
		return nil, err
	}
	k := &Client{c: c, sc: bufio.NewScanner(c)}
	k.sc.Buffer(make([]byte, 4096), proto.AnswerMax)
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	line, err := k.line()
	if err == nil {
		if k.hello, err = proto.ParseHello(line); err != nil {
			if a, aerr := proto.ParseAnswer(line); aerr == nil && !a.OK {
				err = errors.New(a.Error)
			}
		}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("%s: %w", socket, err)
	}
	c.SetReadDeadline(time.Time{})
	return k, nil
}

// Close ends the connection; the world stays as it is.
func (k *Client) Close() error { return k.c.Close() }

// Hello is what the daemon said first.
func (k *Client) Hello() proto.Hello { return k.hello }

func (k *Client) line() ([]byte, error) {
	if k.sc.Scan() {
		return k.sc.Bytes(), nil
	}
	if err := k.sc.Err(); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the daemon has closed the connection: %w", io.ErrUnexpectedEOF)
}

// Do makes a request and waits for its answer. An error of the daemon's is a *proto.Error.
func (k *Client) Do(ctx context.Context, r proto.Request) (*proto.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.id++
	r.ID = k.id
	b, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { k.c.Close() })
	defer stop()
	if _, err := k.c.Write(append(b, '\n')); err != nil {
		return nil, cause(ctx, err)
	}
	line, err := k.line()
	if err != nil {
		return nil, cause(ctx, err)
	}
	a, err := proto.ParseAnswer(line)
	if err != nil {
		return nil, err
	}
	if !a.OK {
		return nil, &proto.Error{Code: a.Code, Text: a.Error, Hint: a.Hint}
	}
	if a.ID != r.ID {
		return nil, fmt.Errorf("the daemon answered request %d, not %d", a.ID, r.ID)
	}
	return &a, nil
}

func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Status asks what every thread is doing.
func (k *Client) Status(ctx context.Context) (*proto.Status, error) {
	a, err := k.Do(ctx, proto.Request{Do: proto.DoStatus})
	if err != nil {
		return nil, err
	}
	if a.Status == nil {
		return nil, errors.New("the daemon's answer has no status")
	}
	return a.Status, nil
}

// Clock asks for virtual time.
func (k *Client) Clock(ctx context.Context) (*proto.Clock, error) {
	a, err := k.Do(ctx, proto.Request{Do: proto.DoClock})
	if err != nil {
		return nil, err
	}
	if a.Clock == nil {
		return nil, errors.New("the daemon's answer has no clock")
	}
	return a.Clock, nil
}

func (k *Client) stop(ctx context.Context, r proto.Request) (*proto.Stop, error) {
	a, err := k.Do(ctx, r)
	if err != nil {
		return nil, err
	}
	if a.Stop == nil {
		return nil, errors.New("the daemon's answer does not say how the world stands")
	}
	return a.Stop, nil
}

// Pause stops all threads.
func (k *Client) Pause(ctx context.Context) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoPause})
}

// Resume lets them go on.
func (k *Client) Resume(ctx context.Context) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoResume})
}

// Continue lets them go on, and waits until the world stands by itself.
func (k *Client) Continue(ctx context.Context) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoContinue})
}

// RunToEvent lets the world go until the thread has had that event.
func (k *Client) RunToEvent(ctx context.Context, thread string, event uint64) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoRunTo, Thread: thread, Event: event})
}

// RunToTime lets it go until that virtual time since the start of the run.
func (k *Client) RunToTime(ctx context.Context, t time.Duration) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoRunTo, TimeNS: uint64(max(t, 0))})
}

// RunToMark lets it go until the mark of that name is made.
func (k *Client) RunToMark(ctx context.Context, mark string) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoRunTo, Mark: mark})
}

// Step lets one thread, or with "" all, have count events.
func (k *Client) Step(ctx context.Context, thread string, count uint64) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoStep, Thread: thread, Count: count})
}

// ClearBreak takes a break away; object or call is empty.
func (k *Client) ClearBreak(ctx context.Context, object, call, thread string) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoBreak, Object: object, Call: call, Thread: thread, Clear: true})
}

// BreakAtObject pauses the world at each event at an object, of a thread or with "" of any.
func (k *Client) BreakAtObject(ctx context.Context, object, thread string) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoBreak, Object: object, Thread: thread})
}

// BreakAtCall pauses it at each event of a call.
func (k *Client) BreakAtCall(ctx context.Context, call, thread string) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoBreak, Call: call, Thread: thread})
}

// Detach takes off the harness.
func (k *Client) Detach(ctx context.Context) (*proto.Stop, error) {
	return k.stop(ctx, proto.Request{Do: proto.DoDetach})
}

// Package control serves the control protocol (package proto) for a World: a run that is being recorded, or one that is
// being re-executed. It owns the socket, its connections and their bounds; what is done to the program is the World's.
package control

import (
	"context"

	"prophet/replayd/proto"
)

// World is a run that can be controlled. Its methods are called by several goroutines, one at a time (Serve sees to
// that), except that Status and Clock may run while one of the others waits. An error that is a *proto.Error keeps its code and hint.
// ctx ends when the client has gone: what waits gives up, and leaves the world as it is.
type World interface {
	// Hello says which world it is.
	Hello() proto.Hello
	// Status is what every thread is doing: process, tid, uid, event number, the call it is in, whose turn it waits for
	// at which object, and its state.
	Status() (*proto.Status, error)
	// Clock is virtual time.
	Clock() (*proto.Clock, error)
	// Pause stops all threads, Resume lets them go on. A world that is paused already stays so.
	Pause(ctx context.Context) (*proto.Stop, error)
	Resume(ctx context.Context) (*proto.Stop, error)
	// Continue lets all go on, and waits until the world stands by itself: at a break, or at its end.
	Continue(ctx context.Context) (*proto.Stop, error)
	// RunTo lets the world go until a thread has had that event, virtual time is reached, or the mark is made; then it
	// is paused. thread and event, timeNS, or mark are given.
	RunTo(ctx context.Context, thread string, event, timeNS uint64, mark string) (*proto.Stop, error)
	// Step lets one thread, or with "" all, have count events each.
	Step(ctx context.Context, thread string, count uint64) (*proto.Stop, error)
	// Break sets or clears a place where the world is paused: an event at an object, or of a call; thread "" is any.
	Break(ctx context.Context, object, call, thread string, clear bool) (*proto.Stop, error)
	// Detach takes off the harness: all threads go on freely from one consistent cut.
	Detach(ctx context.Context) (*proto.Stop, error)
}

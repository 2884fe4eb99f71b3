// Package links finds which event of a trace let another go on: the unlock that let a waiting thread in, the signal that
// woke one, the write whose bytes were read, the call that made a thread or a process, the end that a join waited for.
//
// # Contract
//
// A Tracker is fed the records of a trace in the order of trace.Merge, all of them: what is passed over cannot be linked.
// Add returns the links that became known with a record; of a link one end is that record, or both are earlier ones. So
// a link may come before or after its effect has been seen, but never before both ends have. Finish returns those that the
// end of the trace makes known. A Link says when the cause happened and when the thread at the other end could go on; the
// first is never later than the second.
//
//	Lock      who let go of a mutex, rwlock, spin lock or stream -> who had waited for it. By the places in the object's
//	          order, so it is exact; Held is where who let go had taken it. The cause may be a wait for a condition, which
//	          lets go of its mutex, or a call on a locked stream
//	Wake      signal, broadcast -> wait for a condition. Which waiter a signal woke is not observable: of those who
//	          wait, who returned first gets it; of two signals to the same the first counts
//	Post      sem_post, semop -> who had waited for the semaphore, by places in its order
//	Barrier   the last who arrived -> all others of that generation
//	Once      who ran the routine or initialised the variable -> who waited for that
//	Data      a write or send -> each read or receive that got a part of it, over pipes, socketpairs, connections,
//	          eventfds and message queues with both ends in the run. By positions in the stream or numbers of messages
//	Connect   connect -> the accept that took the connection
//	Start     pthread_create, fork, vfork, clone, posix_spawn … -> the first record of who was made; exec -> the first of
//	          the new program. That end is no event: its Call is 0
//	Exit      the last event of a thread or process, or the record of its end (Call 0) -> who joined it, or waited for it
//
// Not linked: file locks, messages of System V queues, named pipes, datagrams that are sent to an address, descriptors
// that came over a socket, signals, pclose, what threads tell one another through memory.
//
// # Bounds
//
// Memory is bounded by the numbers below, of threads, of processes that live, and of their descriptors that are channels.
// What does not fit is forgotten, oldest first or all at once, and Forgot counts it: links that would have come of it are missing,
// none is wrong because of it. The time of an event is that of a few map look-ups. A Tracker is not safe for concurrent use.
package links

import (
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Kind is what sort of cause a link has.
type Kind uint8

// The kinds.
const (
	Lock Kind = iota
	Wake
	Post
	Barrier
	Once
	Data
	Connect
	Start
	Exit
	Kinds // how many there are
)

var kindNames = [Kinds]string{"lock", "wake", "post", "barrier", "once", "data", "connect", "start", "exit"}

func (k Kind) String() string {
	if k < Kinds {
		return kindNames[k]
	}
	return "unknown"
}

// Point is one end of a link: what is kept of an event. The zero Point is none.
type Point struct {
	Thread *trace.Thread
	N      uint64 // its number in the thread
	Begin  uint64 // ticks
	End    uint64
	PC     uint64
	Obj    trace.Object
	Call   uint16
}

// Row is the call's row, nil when this version does not know it.
func (p *Point) Row() *trace.Row { return trace.RowOf(uint64(p.Call)) }

func pointOf(r *trace.Record) Point {
	return Point{r.Thread, r.N, r.Begin, r.End, r.PC, r.Obj, r.Call}
}

// Link is a cause and its effect.
type Link struct {
	Kind   Kind
	From   Point
	To     Point
	Held   Point        // of Lock: where From's thread had taken it; none when that is not known
	Object trace.Object // through which; of Wake, Post, Lock, Barrier and Once: the object of synchronisation
	Cause  uint64       // ticks: when From let To go on
	Effect uint64       // when To could
	Bytes  uint64       // of Data: how many of From's To got, or messages
}

// Bounds of what is kept. Variables, so that a test reaches them.
var (
	maxObjects   = 1 << 18 // of synchronisation
	maxPending   = 1 << 12 // connections whose other end has not come
	maxSegments  = 512     // writes of one direction that nobody has read yet
	maxAlone     = 16      // the same while the other end of the connection has not come
	maxSnapshots = 1 << 12 // forks whose child has not come
	maxEntries   = 1 << 10 // takers of one object who have not let go
	maxUnread    = 1 << 19 // writes of all directions that nobody has read yet
)

// slackNS is how much stamps of two CPUs, taken before or after the call that they are of, may seem to contradict an order.
const slackNS = 50_000

// Tracker finds links. See the package.
type Tracker struct {
	t       *trace.Trace
	slack   uint64
	out     []Link
	births  []*thread // whose first record this is
	may     bool
	forgot  uint64
	threads []*thread // by UID, where that is small
	others  map[uint32]*thread
	procs   map[uint32]*proc // by number
	pids    map[uint64]*proc // the last one of that id
	objects map[objectKey]*object
	recent  [512]recent
	shared  map[trace.Object]bool // names that mean the same in all processes
	made    map[uint32]Point      // pthread_create, by the thread that it made
	forks   map[forkKey]*forked
	ends    []pendingExit // waits for ends, by when they were over
	nets    map[string]*pending
	queues  map[string]*channel // message queues and pipes by name
	unread  int                 // writes that nobody has read, of all directions
	full    map[*direction]bool // directions that hold such
}

// thread is what is known of a thread.
type thread struct {
	th    *trace.Thread
	proc  *proc
	last  Point      // its last event
	maker Point      // its last event that makes processes
	snap  *table     // its process's descriptors when that was made
	vtab  *table     // those of a vforked child that runs on it
	io    transfer   // what its last event moved, where a record that follows says more of it
	conn  *conn      // its last event's connection, until the record with both ends
	await *trace.Row // waitid: the process is in the record that follows
}

// proc is what is known of a process.
type proc struct {
	p    *trace.Proc
	fds  *table
	last Point
}

// New makes a tracker for a trace.
func New(t *trace.Trace) *Tracker {
	return &Tracker{t: t, slack: t.Clock.Hz / (1e9 / slackNS), others: map[uint32]*thread{}, procs: map[uint32]*proc{}, pids: map[uint64]*proc{},
		objects: map[objectKey]*object{}, shared: map[trace.Object]bool{}, made: map[uint32]Point{}, forks: map[forkKey]*forked{},
		nets: map[string]*pending{}, queues: map[string]*channel{}, full: map[*direction]bool{}}
}

// Forgot is how many things had to be forgotten.
func (k *Tracker) Forgot() uint64 { return k.forgot }

// Leads reports whether the event that was added last may yet turn out to be the cause of links: of later events.
func (k *Tracker) Leads() bool { return k.may }

const smallUID = 1 << 16

func (k *Tracker) thread(th *trace.Thread) *thread {
	if th.UID < uint32(len(k.threads)) {
		if s := k.threads[th.UID]; s != nil {
			return s
		}
	} else if s := k.others[th.UID]; s != nil {
		return s
	}
	s := &thread{th: th, proc: k.proc(th)}
	k.births = append(k.births, s)
	if th.UID >= smallUID {
		k.others[th.UID] = s
		return s
	}
	for uint32(len(k.threads)) <= th.UID {
		k.threads = append(k.threads, nil)
	}
	k.threads[th.UID] = s
	return s
}

// find is the thread of that number, nil when nothing was heard of it yet.
func (k *Tracker) find(uid uint32) *thread {
	if uid < uint32(len(k.threads)) {
		return k.threads[uid]
	}
	return k.others[uid]
}

// Add takes the next record. The links are valid until the next call.
func (k *Tracker) Add(r *trace.Record) []Link {
	k.out = k.out[:0]
	if len(k.ends) > 0 && k.ends[0].at <= r.Begin {
		k.over(r.Begin)
	}
	if r.Thread == k.t.Run {
		return k.out
	}
	s := k.thread(r.Thread)
	for _, b := range k.births {
		k.birth(b, r)
	}
	k.births = k.births[:0]
	if r.Tag == trace.TagEvent {
		k.event(s, r)
	} else {
		k.control(s, r)
	}
	return k.out
}

// Finish is called at the end of the trace.
func (k *Tracker) Finish() []Link {
	k.out = k.out[:0]
	k.over(1<<64 - 1)
	return k.out
}

func (k *Tracker) event(s *thread, r *trace.Record) {
	k.may = false
	if s.vtab != nil && r.Note&cabi.NoteVforked == 0 {
		s.vtab = nil
	}
	s.conn, s.await, s.io.on = nil, nil, false
	if int(r.Call) < len(deeds) {
		if do := deeds[r.Call]; do != nil {
			do(k, s, r)
		}
	}
	s.last = pointOf(r)
	s.proc.last = s.last
}

func (k *Tracker) control(s *thread, r *trace.Record) {
	switch r.Tag {
	case cabi.TagObject:
		k.named(s, r)
	case cabi.TagFork:
		k.forkRecord(s, r)
	case cabi.TagInput:
		k.input(s, r)
	case cabi.TagExit:
		if r.Nums[0] != cabi.ExitExec {
			s.proc.fds = nil // what follows of it has no descriptors that matter
			s.last = Point{Thread: s.th, N: r.N, Begin: r.Begin, End: r.End}
			s.proc.last = s.last
		}
	}
}

// link makes one known. Where stamps contradict the order, which is certain, the cause is moved back within its event, and
// then the effect up to it.
func (k *Tracker) link(kind Kind, from Point, cause uint64, to Point, effect uint64, obj trace.Object) *Link {
	if cause > effect {
		cause = max(effect, from.Begin)
	}
	k.out = append(k.out, Link{Kind: kind, From: from, To: to, Object: obj, Cause: cause, Effect: max(cause, effect)})
	return &k.out[len(k.out)-1]
}

// deed is what an event of a call does to what the tracker knows.
type deed func(k *Tracker, s *thread, r *trace.Record)

// deeds is by call. Names without the variants that mean the same are in verbs.
var deeds = func() []deed {
	var top uint16
	for i := range cabi.Calls {
		top = max(top, cabi.Calls[i].ID)
	}
	list := make([]deed, int(top)+1)
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		row := trace.RowOf(uint64(c.ID))
		if d := verbs[base(c.Name)]; d != nil {
			list[c.ID] = d
		} else if row.Obj == "stdio" && row.Seq && c.Name != "fclose" {
			list[c.ID] = (*Tracker).stream
		}
	}
	return list
}()

// base is the name that a call has without its variants.
func base(name string) string {
	name = strings.TrimPrefix(name, "__")
	name = strings.TrimSuffix(name, "_chk")
	name = strings.TrimSuffix(name, "_2")
	return strings.TrimSuffix(name, "64")
}

var verbs = map[string]deed{
	"pthread_mutex_lock": (*Tracker).lock, "pthread_mutex_trylock": (*Tracker).lock, "pthread_mutex_timedlock": (*Tracker).lock,
	"pthread_mutex_clocklock": (*Tracker).lock, "pthread_mutex_unlock": (*Tracker).unlock,
	"mtx_lock": (*Tracker).lock, "mtx_trylock": (*Tracker).lock, "mtx_timedlock": (*Tracker).lock, "mtx_unlock": (*Tracker).unlock,
	"pthread_spin_lock": (*Tracker).lock, "pthread_spin_trylock": (*Tracker).lock, "pthread_spin_unlock": (*Tracker).unlock,
	"flockfile": (*Tracker).lock, "ftrylockfile": (*Tracker).lock, "funlockfile": (*Tracker).unlock,
	"pthread_rwlock_rdlock": (*Tracker).readLock, "pthread_rwlock_tryrdlock": (*Tracker).readLock,
	"pthread_rwlock_timedrdlock": (*Tracker).readLock, "pthread_rwlock_clockrdlock": (*Tracker).readLock,
	"pthread_rwlock_wrlock": (*Tracker).lock, "pthread_rwlock_trywrlock": (*Tracker).lock,
	"pthread_rwlock_timedwrlock": (*Tracker).lock, "pthread_rwlock_clockwrlock": (*Tracker).lock, "pthread_rwlock_unlock": (*Tracker).unlock,

	"pthread_cond_wait": (*Tracker).condWait, "pthread_cond_timedwait": (*Tracker).condWait, "pthread_cond_clockwait": (*Tracker).condWait,
	"pthread_cond_signal": (*Tracker).signal, "pthread_cond_broadcast": (*Tracker).broadcast,
	"cnd_wait": (*Tracker).condWait, "cnd_timedwait": (*Tracker).condWait, "cnd_signal": (*Tracker).signal, "cnd_broadcast": (*Tracker).broadcast,

	"sem_wait": (*Tracker).semWait, "sem_trywait": (*Tracker).semWait, "sem_timedwait": (*Tracker).semWait, "sem_clockwait": (*Tracker).semWait,
	"sem_post": (*Tracker).semPost, "semop": (*Tracker).semOp, "semtimedop": (*Tracker).semOp,
	"pthread_barrier_wait": (*Tracker).barrier,
	"pthread_once":         (*Tracker).once, "call_once": (*Tracker).once, "cxa_guard_acquire": (*Tracker).guard, "cxa_guard_release": (*Tracker).guarded,

	"pthread_mutex_init": (*Tracker).anew, "pthread_mutex_destroy": (*Tracker).anew, "mtx_init": (*Tracker).anew, "mtx_destroy": (*Tracker).anew,
	"pthread_spin_init": (*Tracker).anew, "pthread_spin_destroy": (*Tracker).anew, "pthread_rwlock_init": (*Tracker).anew, "pthread_rwlock_destroy": (*Tracker).anew,
	"pthread_cond_init": (*Tracker).anew, "pthread_cond_destroy": (*Tracker).anew, "cnd_init": (*Tracker).anew, "cnd_destroy": (*Tracker).anew,
	"sem_init": (*Tracker).anew, "sem_destroy": (*Tracker).anew, "pthread_barrier_init": (*Tracker).anew, "pthread_barrier_destroy": (*Tracker).anew,

	"pthread_create": (*Tracker).create, "thrd_create": (*Tracker).create,
	"pthread_join": (*Tracker).join, "pthread_tryjoin_np": (*Tracker).join, "pthread_timedjoin_np": (*Tracker).join, "pthread_clockjoin_np": (*Tracker).join, "thrd_join": (*Tracker).join,
	"fork": (*Tracker).fork, "_Fork": (*Tracker).fork, "vfork": (*Tracker).fork, "clone": (*Tracker).fork, "daemon": (*Tracker).fork, "forkpty": (*Tracker).fork,
	"posix_spawn": (*Tracker).fork, "posix_spawnp": (*Tracker).fork, "system": (*Tracker).system, "popen": (*Tracker).fork, "_IO_popen": (*Tracker).fork,
	"execve": (*Tracker).exec, "execv": (*Tracker).exec, "execvp": (*Tracker).exec, "execvpe": (*Tracker).exec, "execl": (*Tracker).exec, "execlp": (*Tracker).exec,
	"execle": (*Tracker).exec, "fexecve": (*Tracker).exec, "execveat": (*Tracker).exec,
	"wait": (*Tracker).wait, "waitpid": (*Tracker).wait, "wait3": (*Tracker).wait, "wait4": (*Tracker).wait, "waitid": (*Tracker).waitid,

	"pipe": (*Tracker).pair, "pipe2": (*Tracker).pair, "socketpair": (*Tracker).pair, "socket": (*Tracker).socket,
	"accept": (*Tracker).accept, "accept4": (*Tracker).accept, "connect": (*Tracker).connect,
	"eventfd": (*Tracker).eventfd, "mq_open": (*Tracker).mqOpen,
	"dup": (*Tracker).dup, "dup2": (*Tracker).dup, "dup3": (*Tracker).dup, "fcntl": (*Tracker).fcntl,
	"close": (*Tracker).close, "_IO_file_close": (*Tracker).close, "mq_close": (*Tracker).close, "close_range": (*Tracker).closeRange, "closefrom": (*Tracker).closeRange,
	"open": (*Tracker).opened, "openat": (*Tracker).opened, "creat": (*Tracker).opened, "memfd_create": (*Tracker).opened, "epoll_create": (*Tracker).opened,
	"epoll_create1": (*Tracker).opened, "timerfd_create": (*Tracker).opened, "signalfd": (*Tracker).opened, "mkstemp": (*Tracker).opened, "mkostemp": (*Tracker).opened,
	"shm_open": (*Tracker).opened, "posix_openpt": (*Tracker).opened, "inotify_init": (*Tracker).opened, "inotify_init1": (*Tracker).opened, "pidfd_open": (*Tracker).opened,

	"read": (*Tracker).read, "readv": (*Tracker).read, "recv": (*Tracker).read, "recvfrom": (*Tracker).read, "recvmsg": (*Tracker).read, "_IO_file_read": (*Tracker).read,
	"mq_receive": (*Tracker).read, "mq_timedreceive": (*Tracker).read, "eventfd_read": (*Tracker).read, "recvmmsg": (*Tracker).many,
	"write": (*Tracker).write, "writev": (*Tracker).write, "send": (*Tracker).write, "sendto": (*Tracker).write, "sendmsg": (*Tracker).write, "_IO_file_write": (*Tracker).write,
	"mq_send": (*Tracker).write, "mq_timedsend": (*Tracker).write, "eventfd_write": (*Tracker).write, "sendmmsg": (*Tracker).many,
	"sendfile": (*Tracker).transfer, "splice": (*Tracker).transfer,
}

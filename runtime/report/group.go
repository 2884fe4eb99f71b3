package report

import (
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// Group is what a thread's time went to. A call's time belongs to the group of what it acts on: read of a socket is
// network, read of a file is disk.
type Group uint8

// The groups; their order is that of pictures.
const (
	Compute  Group = iota // between calls: computing, or ready and without a CPU
	Disks                 // files and directories
	Network               // sockets, names of hosts
	Pipes                 // pipes, terminals, message queues
	Locks                 // until a lock was free
	Waiting               // until something happened: conditions, barriers, readiness, ends of threads and processes
	Sleeping              // until a time came
	Others                // all other calls
	groups
)

// Groups is how many groups there are.
const Groups = int(groups)

var groupNames = [groups]string{"compute", "disk", "network", "pipe", "lock", "wait", "sleep", "other"}

func (g Group) String() string { return groupNames[g] }

// GroupNames are the names of all groups, in their order.
func GroupNames() []string { return groupNames[:] }

// fdKind is what a descriptor is of.
type fdKind uint8

const (
	fdUnknown fdKind = iota
	fdFile
	fdSocket
	fdPipe
	fdEvent // eventfd, timerfd, epoll, inotify …
	fdKinds
)

var fdKindNames = [fdKinds]string{"", "file", "socket", "pipe", "event"}

// plainName is a call's name without what only tells its entry points apart: __read_chk and _IO_file_read are read.
func plainName(name string) string {
	name = strings.TrimPrefix(name, "_IO_file_")
	name = strings.TrimLeft(name, "_")
	name = strings.TrimSuffix(name, "_chk")
	name = strings.TrimSuffix(name, "_2")
	if name != "getdents64" {
		name = strings.Replace(name, "64", "", 1)
	}
	return name
}

// callInfo is what the collector knows of a row before it has seen an event of it.
type callInfo struct {
	row   *trace.Row
	name  string // plain
	group Group  // where the object is no descriptor that tells
	byFd  bool   // the descriptor's kind tells the group
	moves move
	does  fdOp
	tells bool // notes that it waited
	sync  bool // its object is one that threads wait at
	ofFd  bool // its object is a descriptor
	named bool // it gives a thread a name
	kind  lockKind
	stat  int // which of the collector's stats, of fdKinds each
}

// move is what a call does to data.
type move uint8

const (
	moveNone move = iota
	moveIn
	moveOut
	moveBoth // from its object to the descriptor in f2
	moveSync
)

// lockKind is what a call does to a lock.
type lockKind uint8

const (
	lockNone lockKind = iota
	lockTake
	lockShare
	lockFree
	lockWaits // for a condition: the mutex is let go of meanwhile
)

var moveNames = map[string]move{
	"read": moveIn, "pread": moveIn, "readv": moveIn, "preadv": moveIn, "preadv2": moveIn, "preadvv2": moveIn,
	"recv": moveIn, "recvfrom": moveIn, "recvmsg": moveIn, "getdents64": moveIn,
	"write": moveOut, "pwrite": moveOut, "writev": moveOut, "pwritev": moveOut, "pwritev2": moveOut, "pwritevv2": moveOut,
	"send": moveOut, "sendto": moveOut, "sendmsg": moveOut,
	"sendfile": moveBoth, "copy_file_range": moveBoth, "splice": moveBoth, "tee": moveBoth,
	"fsync": moveSync, "fdatasync": moveSync, "syncfs": moveSync, "sync_file_range": moveSync,
}

var waitNames = map[string]bool{
	"poll": true, "ppoll": true, "select": true, "pselect": true, "epoll_wait": true, "epoll_pwait": true, "epoll_pwait2": true,
	"sigwait": true, "sigwaitinfo": true, "sigtimedwait": true, "sigsuspend": true, "pause": true, "accept": true, "accept4": true,
	"pthread_join": true, "pthread_tryjoin_np": true, "pthread_timedjoin_np": true, "pthread_clockjoin_np": true, "thrd_join": true,
	"wait": true, "waitpid": true, "waitid": true, "wait3": true, "wait4": true, "system": true, "pclose": true,
}

// Stats are by plain name; the first is that of calls that are not known.
const statUnknown = 0

var (
	infos     []callInfo // by id of call
	statCount int
)

func init() {
	list := make([]callInfo, 1<<11)
	names := map[string]int{}
	for i := range cabi.Calls {
		c := &cabi.Calls[i]
		if int(c.ID) >= len(list) {
			list = append(list, make([]callInfo, int(c.ID)+1-len(list))...)
		}
		in := infoOf(trace.RowOf(uint64(c.ID)))
		if names[in.name] == 0 {
			names[in.name] = len(names) + 1
		}
		in.stat = names[in.name]
		list[c.ID] = in
	}
	infos, statCount = list, (len(names)+1)*int(fdKinds)
}

func infoOf(row *trace.Row) callInfo {
	n := plainName(row.Name)
	in := callInfo{row: row, name: n, moves: moveNames[n], does: fdOps[n], kind: lockKindOf(n)}
	switch row.Obj {
	case "mutex", "rwlock", "spin", "sem", "once", "guard", "stdio":
		in.tells = true
	}
	in.ofFd = row.Obj == "fd"
	in.named = n == "pthread_setname_np" || n == "prctl"
	in.byFd = in.ofFd && !waitNames[n]
	switch {
	case waitNames[n]:
		in.group = Waiting
	case n == "flock" || n == "lockf" || n == "fcntl":
		in.group, in.byFd = Locks, false
	case row.Class == cabi.Sync || row.Class == cabi.Stdio && row.Seq:
		switch row.Obj {
		case "mutex", "rwlock", "spin", "once", "guard", "stdio":
			in.group = Locks
		case "":
			in.group = Others
		default:
			in.group = Waiting
		}
	case row.Class == cabi.Disk || row.Class == cabi.Stdio:
		in.group = Disks
	case strings.HasPrefix(n, "mq_") || strings.HasPrefix(n, "msg"):
		in.group, in.byFd = Pipes, false
	case row.Class == cabi.Net:
		in.group = Network
	case n == "nanosleep" || n == "clock_nanosleep" || n == "usleep" || n == "sleep" || n == "thrd_sleep":
		in.group = Sleeping
	default:
		in.group = Others
	}
	in.sync = row.Obj != "" && (row.Class == cabi.Sync || row.Class == cabi.Stdio && row.Seq)
	return in
}

func lockKindOf(n string) lockKind {
	switch n {
	case "pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock", "pthread_mutex_clocklock", "mtx_lock", "mtx_trylock", "mtx_timedlock",
		"pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock",
		"pthread_spin_lock", "pthread_spin_trylock":
		return lockTake
	case "pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_clockrdlock":
		return lockShare
	case "pthread_mutex_unlock", "mtx_unlock", "pthread_rwlock_unlock", "pthread_spin_unlock":
		return lockFree
	case "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "cnd_wait", "cnd_timedwait":
		return lockWaits
	}
	return lockNone
}

// groupOf is what the time of an event belongs to.
func (in *callInfo) groupOf(k fdKind) Group {
	if in.byFd {
		switch k {
		case fdSocket:
			return Network
		case fdPipe:
			return Pipes
		case fdEvent:
			return Waiting
		case fdFile:
			if in.group == Network {
				return Network
			}
			return Disks
		}
	}
	return in.group
}

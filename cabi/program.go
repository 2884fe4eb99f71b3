package cabi

// A program is what a trace is compiled to, for the engine that issues its demand (runtime/demand writes it,
// replayd/issue runs it): the operations of every thread as an array, without the traced program, its data or its names.
// It is one file: Prog, then the tables at the places that Prog names, each of Prog…'s structs. All numbers are
// indexes into these tables; the engine checks every one before it starts. tools/gen prints zprogram.h from this file.

// Prog is the head of a compiled program.
type Prog struct {
	Magic     uint64
	Version   uint32
	Procs     uint32
	Threads   uint32
	Objects   uint32
	Preds     uint32
	Files     uint32
	Bodies    uint32
	Sites     uint32 // contexts, from 1
	Listeners uint32 // sockets that threads of the run connect to
	Keys      uint32 // of all PredKeyed together
	Grams     uint32 // ports that datagrams are sent to
	Pad       uint32
	Ops       uint64
	Jumps     uint64
	Rows      uint64
	Home      uint64 // ns from the recorded run's beginning to its end
	CPU       uint64 // ns of demand, of all threads

	ProcsAt   uint64
	ThreadsAt uint64
	ObjectsAt uint64
	PredsAt   uint64
	FilesAt   uint64
	BodiesAt  uint64
	OpsAt     uint64
	JumpsAt   uint64
	RowsAt    uint64
	Size      uint64 // of the whole file
	Sum       uint64 // xxhash64 of all but itself
}

// ProgProc is a process: one of the kernel's, whatever programs it becomes by exec.
type ProgProc struct {
	Main   uint32 // its first thread
	Parent uint32 // process; itself: the first
	Pages  uint64 // resident at most
}

// ProgThread is a thread. Its operations are Count ones from First.
type ProgThread struct {
	First uint64
	Count uint64
	Proc  uint32
	UID   uint32 // in the trace; of a process that became another program, the first one's
}

// ProgObject is a synchronisation object; what Value is depends on the kind.
type ProgObject struct {
	Kind  uint16 // Obj…
	Flags uint16 // Object…
	Value uint32 // a barrier's count, a semaphore's value
}

// Flags of objects.
const (
	ObjectRecursive = 1
	ObjectShared    = 2 // between processes
)

// ProgPred is when a wait loop ends: a predicate, as learnt from the home run. Whoever comes to the loop waits until
// enough sections that signal have released it. Kind says what enough is.
type ProgPred struct {
	Kind  uint32 // Pred…
	Cond  uint32 // object
	Unit  uint32 // how many may pass for each release; a barrier's number of arrivals
	Rows  uint32 // of Rows, for PredRows; of keys, for PredKeyed; for PredQueue, where it matters who takes what, the operations that follow when what the nth release gave is taken
	First uint64 // of them
	Start int64  // how many may pass before the first release
	Mutex uint32
	Roles uint32 // bodies from here: first what waits (RolesWait of them), then what releases (RolesRelease)
	Wait  uint32
	Last  uint32
	Own   uint32 // whose releases do not count: Own…
	Lone  uint32 // of OwnThread: the only thread that waits
}

// Whose releases do not count for a predicate.
const (
	OwnSection = 1 // of a section that came to the loop itself
	OwnThread  = 2 // of the only thread that waits there
)

// Kinds of predicates.
const (
	PredQueue   = 1 // the nth to pass needs n <= Start + Unit*releases
	PredBarrier = 2 // of each Unit arrivals the last releases and the others wait for it
	PredRows    = 3 // the nth to arrive needs as many releases as Rows says
	PredEnds    = 5 // each release, by a thread that ends, lets one pass, who goes on with what home did after that one (Rows)
	PredKeyed   = 4 // the nth to arrive needs the release of the key nth+Start
)

// ProgFile is a file that is prepared before, or a name that can come to be. The name in the prepared directory is made of its number.
type ProgFile struct {
	Size  uint64
	Flags uint32 // File…
	Pad   uint32
}

// Flags of files.
const (
	FileExists = 1  // before the run
	FileDir    = 2  //
	FileFull   = 4  // has its blocks: the run writes it in place
	FileCold   = 8  // was outside the page cache
	FileNull   = 16 // /dev/null stands for it
	FileZero   = 32 // /dev/zero
	FileRandom = 64 // /dev/urandom
)

// ProgBody is what a thread does in the place of a section of its own: Count operations from First, then it is back.
type ProgBody struct {
	First uint64
	Count uint64
}

// ProgJump is one way on that is known for an operation with a context: where Result came there, At is what was done next. They
// are sorted by site and result.
type ProgJump struct {
	Site   uint32
	Thread uint32
	Result int64
	At     uint64
	Held   uint64 // the locks that the thread had then: HeldLock and HeldFile of each, added
	Met    uint64 // the version that it had read last, this being that read or not: Met; 0: none
}

// Kind is what of a result decides the way on.
func Kind(result int64) int64 { return -(-min(result, 0) & (1<<ResultBits - 1)) }

// VersionOf is how often a part of a file had been written, by all of the run, when it was read: what a process finds there, and does
// then, hangs on that where several write.
func VersionOf(result int64) int64 { return -min(result, 0) >> ResultBits }

// Met is which version a read with OpVersion found, and where.
func Met(site uint32, result int64) uint64 {
	return uint64(site)<<32 | uint64(uint32(VersionOf(result)))
}

// HeldLock is what a lock counts among those that a thread has.
func HeldLock(object uint32) uint64 {
	x := (uint64(object) + 1) * HeldFactor
	return x ^ x>>29
}

// HeldFile is what a lock of a part of a file counts.
func HeldFile(fd uint32, start, length, kind int64) uint64 {
	x := (((uint64(start)*HeldFactor+uint64(length))*HeldFactor+uint64(kind))*HeldFactor + uint64(fd) + 1) * HeldFactor
	return x ^ x>>31
}

// HeldFiles is how many of them are counted of a process.
const HeldFiles = 8

// HeldFactor is odd.
const HeldFactor = 0x9e3779b97f4a7c15

// ProgRow is one number of a predicate's table.
type ProgRow struct {
	Value uint64
}

// ProgOp is one operation. CPU ns of demand come before it.
type ProgOp struct {
	Code  uint16
	Flags uint16 // OpChoice …
	Obj   uint32 // object, file, thread, process, or descriptor of the recorded run
	CPU   uint32
	Site  uint32 // context
	A     int64
	B     int64
	Want  int64 // what came of it at home; negative: -errno
}

// Flags of operations.
const (
	OpChoice  = 1   // another result than Want means another way on
	OpRole    = 2   // of a lock: A is the predicate whose arrivals it counts, B how many operations the section has
	OpHome    = 4   // its time is the home run's: what it waits for is outside
	OpLast    = 8   // with OpRole: the section is one that releases, and not one that waits
	OpSingle  = 16  // what its call took at home is part of the demand after it
	OpMust    = 64  // another result than Want ends the issue; of OpCondwait: it waits to be woken, and not for its turn
	OpVersion = 128 // with OpState: of a read, its version decides, too
	OpState   = 32  // with OpChoice: what decides is not what the call returned but what it met, and Want says that: of a read -ResultMoved where others have written there since the process looked last, less its version with OpVersion, of a question for a lock -ResultHeld where somebody has it, of a name -ResultEmpty where its file is empty
)

// Operations. The comment says what A and B are; Obj is what the name says.
const (
	OpNop          = 0
	OpEnd          = 1 // of a thread
	OpThink        = 2 // A ns pass without the CPU
	OpCPU          = 3 // A ns more
	OpLock         = 4
	OpUnlock       = 5
	OpTrylock      = 6
	OpTimedlock    = 7 // A ns
	OpRdlock       = 8
	OpWrlock       = 9
	OpTryrdlock    = 10
	OpTrywrlock    = 11
	OpRwunlock     = 12
	OpSpinlock     = 13
	OpSpintry      = 14
	OpSpinunlock   = 15
	OpBarrier      = 16
	OpSemwait      = 17
	OpSemtry       = 18
	OpSemtimed     = 19 // A ns
	OpSempost      = 20
	OpWait         = 21 // A predicate, B ns or 0: with its mutex held, until it may pass
	OpSignal       = 22 // A 0: its predicates are released, 1: they were before; B the key, Want which release it was at home, each plus 1
	OpBroadcast    = 23
	OpRelease      = 24 // the predicates of a condition, before the unlock that follows; B and Want as of OpSignal
	OpTurn         = 25 // A place: until those before it in the object's order are taken, and B readers had it
	OpPlaced       = 26 // A place that is taken now; 0: a reader had it
	OpCreate       = 27
	OpJoin         = 28
	OpFork         = 29
	OpWaitpid      = 30 // Obj a process; A 1: without hanging
	OpExit         = 31 // the process: A status
	OpSleep        = 32 // A ns; B how many tries in a row had failed before it, 0: it does not come after one that did
	OpOpen         = 33 // A flags, B file; Obj the descriptor it gave at home
	OpClose        = 34
	OpRead         = 35 // A bytes, B ns that home took where the descriptor leads out of the run; a stream gives Want bytes
	OpWrite        = 36 // the same
	OpPread        = 37 // A bytes, B place
	OpPwrite       = 38
	OpLseek        = 39 // A, B whence
	OpFsync        = 40
	OpFdatasync    = 41
	OpSyncfs       = 42
	OpSyncrange    = 43 // A place, B bytes
	OpTruncate     = 44 // A bytes
	OpFallocate    = 45 // A place, B bytes
	OpFstat        = 46
	OpFadvise      = 47 // A advice
	OpDup          = 48 // A the new descriptor; B 1: exec closes it
	OpPipe         = 49 // Obj the end to read, A to write; B 1: exec closes them
	OpSocketpair   = 50 // Obj, A; B as of OpPipe
	OpFlock        = 51 // A operation
	OpFcntlLock    = 52 // A command<<8 | type, B place; the length is in the OpMore that follows
	OpMore         = 53 // A, B: belongs to the operation before it
	OpStat         = 54 // Obj file
	OpAccess       = 55
	OpUnlink       = 56
	OpMkdir        = 57
	OpRmdir        = 58
	OpRename       = 59 // A the new one
	OpLink         = 60 // A the new one
	OpTruncateName = 61 // A bytes
	OpSendfile     = 62 // Obj from, A to, B bytes
	OpCopyrange    = 63 // Obj from, A to, B bytes
	OpResident     = 64 // A pages
	OpTake         = 65 // as OpRead, of what is a stream
	OpGive         = 66
	OpAccept       = 67 // Obj listener, A the descriptor
	OpConnect      = 68 // Obj descriptor, A listener
	OpShutdown     = 69 // A how
	OpYield        = 70
	OpExec         = 71 // descriptors that exec closes are closed
	OpCloexec      = 72 // A 1: exec closes it
	OpCheck        = 73 // A place that is taken now, B readers that had it; A 0: a reader has it, after B places. Where it is not so the issue ends
	OpCondwait     = 74 // Obj condition, A mutex, B ns or 0: an OpMore follows, A the place after which it may go on, B ns that it sleeps
	OpGiveGram     = 75 // Obj port: a datagram of A bytes
	OpTakeGram     = 76 // the next one that comes to it
	OpLimit        = 77
)

// ProgResult is the head of what the engine says in the end. A ProgResultThread for each thread follows, then their logs.
type ProgResult struct {
	Magic   uint64
	Version uint32
	Threads uint32
	Begin   uint64 // ticks
	End     uint64 // of the first process
	Hz      uint64 // ticks a second
	Nanos   uint64 // from begin to end
	Status  uint32 // Result…
	Failed  uint32 // errno; of ResultDiverged the thread that was first, plus 1, 0: nothing could move
	CPU     uint64 // ns of the first process until its end, and of those that it waited for
	Loop    uint64 // fs that an iteration of the loop is taken to take
	Line    uint64 // fs that a line of memory walked is, and
	Block   uint64 // one with the iterations that belong to it
}

// How an issue ended.
const (
	ResultDone     = 0
	ResultStuck    = 1 // nothing could move
	ResultFailed   = 2 // the engine could not do what it had to: errno Failed
	ResultKilled   = 3 // from outside
	ResultLate     = 5 // it had taken as long as it may
	ResultDiverged = 4 // a thread came to another order or result than the program has, which was to end it (OpCheck, OpMust)
)

// ProgResultThread is what the engine says of a thread.
type ProgResultThread struct {
	Done    uint64 // operations
	Logged  uint64 // entries of its log
	Cut     uint64 // operations that found no room there
	Other   uint64 // results that were not home's and that a way on was known for
	Unknown uint64 // or was not
	Outside uint64 // ns slept for what is outside of the run
	Forced  uint64 // waits that ended as nothing else moved
	Over    uint64 // it came to its end
	At      uint64 // the operation it was in at last
	On      uint64 // of an issue in which nothing could move: the thread that has what it waits for, plus 1; 0: not known
}

// ProgLog is what the engine says of one operation that it issued. Its thread's are in order.
type ProgLog struct {
	Begin  uint64 // ticks
	End    uint64
	Op     uint64 // index; LogUnknown: and what was done after it is a guess
	Seq    uint64 // place in the object's order; 0: took none
	Result int64
}

// Of programs.
const (
	ProgMagic   = 0x474f52504850_5250
	ResultMagic = 0x54534552504850_52
	ProgVersion = 5 // 1 told ways on by a hash of the choices before them, and had no OpState; 2 had no datagrams; 3 did not say how long home took; 4 had no versions
	LogUnknown  = 1 << 63
	ResultMoved = 116 // ESTALE
	ResultHeld  = 11  // EAGAIN
	ResultEmpty = 61  // ENODATA
	ResultBits  = 16  // of a negative result without its sign say what decides; above them is, of a read with OpState, the version
	VersionMost = 1<<32 - 1
	ProgNever   = 1 << 30 // a PredRows row that has no bound
)

// Package cabi is the contract between the C inside the traced program and the Go outside of it: the table of
// intercepted functions (calls*.go), the layout of what both sides map or write (layout.go), and the kinds of
// records (events.go). It imports nothing of ours. tools/gen prints the C headers from it; the C compiler
// asserts sizes and offsets, so the layout is stated here and nowhere else.
package cabi

// Sizes and limits that both sides use. gen prints each as `#define PROPHET_<NAME>`.
const (
	ChunkMagic    = 0x31485050 // "PPH1", little-endian, at the start of every chunk
	ControlMagic  = 0x314c5443484f5250
	OwnersAt      = 4096                           // in the file `control`: one u32 a slot, the pid that uses it
	KnownAt       = OwnersAt + SlotsMax*4          // one u64 a file that the run has kept or created
	ControlSize   = KnownAt + KnownFiles*8         // the file `control`: Control, owners, known files
	ControlRoom   = ControlSize + SharedObjects*64 // what processes of the run map of it: synchronisation objects that they share follow (shim/object.h), their space comes with the first
	SlotSize      = 64 << 10
	SlotHeader    = 192 // a Slot, then the ring's payload up to SlotSize
	ChunkHeader   = 64
	RingCap       = SlotSize - SlotHeader - ChunkHeader
	RecordMax     = 8 << 10 // no single commit is longer
	RingLimit     = RingCap - RecordMax
	SlotFirst     = 16 << 10 // what a slot has memory for from the start; the rest comes when its thread gets there
	FirstLimit    = SlotFirst - SlotHeader - ChunkHeader - RecordMax
	SlotsMax      = 16384
	StreamFiles   = 32      // stream-00 … stream-31; a process appends to the one of its number modulo this
	ChunkMax      = 1 << 24 // payload of one chunk; readers refuse longer ones
	InlineData    = 2048    // longer input data goes into a data chunk of its own,
	InlineGrown   = 8192    // once its thread's slot has all its memory: longer than this
	TailMax       = 3584    // longest tail of one event; longer text is cut and flagged
	KnownFiles    = 8192
	SharedObjects = 4096
	KeySlots      = 512 // entries of a thread's key cache, and so the number of keys of one chunk
	FirstKey      = 32  // record tags below this are control records, the rest are keys
	DelaySlots    = 8
	StackRate     = 99   // stacks a second and thread, where nobody says otherwise
	StackRateMax  = 1000 // the most that may be asked for
)

// Parts of the file `control` that get their space when they are first needed. The first page of the table of owners
// has it from the start.
const (
	RoomOwners  = 1
	RoomKnown   = 2
	RoomShared  = 4 // synchronisation objects that processes share (shim/object.h)
	OwnersFirst = 1024
)

// Chunk kinds.
const (
	ChunkEvents  = 1 // records of one thread
	ChunkData    = 2 // the bytes of one input, named by a BIGDATA record
	ChunkControl = 3 // records that belong to the run (a change of level from outside)
)

// Chunk flags.
const (
	ChunkOnBehalf  = 1 // written by another thread than the one whose records it holds
	ChunkRecovered = 2 // written after the process had ended, from its shared memory
	ChunkLast      = 4 // the thread wrote it when it ended
)

// Chunk is the header of every chunk in a stream file; its payload follows. Little-endian, as everything here.
type Chunk struct {
	Magic   uint32
	Kind    uint16
	Flags   uint16
	Len     uint32 // bytes of payload
	UID     uint32 // the thread, by its number in the run
	Seq     uint64 // of the thread's chunks of this kind, from 0; doubles (see ChunkOnBehalf) have one number
	Base    uint64 // ticks; the first record's time is relative to it
	Proc    uint32 // the process, by its number in the run
	Version uint32 // FormatVersion
	Pad     uint64
	Sum     uint64 // xxhash64 of the payload
	HeadSum uint64 // xxhash64 of the 56 bytes before
}

// Slot is the head of one thread's ring in the run's shared-memory file, written by its thread; who owns it is
// in the table of owners in `control` (Owner here is its copy, left for recovery). Pos is committed by one instruction (see shim/ring.h); bytes below it never change until
// Gen changes.
type Slot struct {
	Owner  uint32 // pid, 0 when free
	TID    uint32
	UID    uint32
	Proc   uint32
	Pos    uint64 // low half: bytes of payload committed; high half: flushes so far, so that no value comes twice
	Seq    uint64 // number of the chunk being filled
	Base   uint64 // ticks at the chunk's start
	Gen    uint64 // odd while the owner flushes; changes with every flush
	Start  uint64 // CLOCK_BOOTTIME ns when the process was first recorded: a process of that pid that started later is another one
	State  uint32 // SlotLive …
	Flags  uint32
	Call   uint32 // call the thread is inside of, 0 when none; commands show it
	NS     uint32 // pid namespace that Owner is a number in, 0 when not known
	Begin  uint64 // ticks when it entered
	Parked uint32 // the value of Control.Pause that the thread sleeps on, 0 when it does not
	Pad    uint32
	Pads   [96]byte
	Unused uint64
}

// Slot states.
const (
	SlotFree   = 0
	SlotLive   = 1
	SlotEnding = 2 // the thread's start routine has returned; destructors may still run
)

// Levels: a bit a class (1 << Class), so that switching costs the program one load it does anyway.
const (
	LevelOff  = 0
	LevelFull = 0xffffffff
)

// How much of the inputs is kept.
const (
	InputsNone    = 0
	InputsHash    = 1
	InputsFull    = 2
	InputsDefault = 3
	InputsReplay  = 4 // compared, not kept
)

// Delay is one entry of the slot for injected delays: the Nth event of Call (0: any) in thread UID (0: any)
// waits NS before it begins. Count is the recorder's.
type Delay struct {
	Call  uint32
	UID   uint32
	Nth   uint64
	NS    uint64
	Count uint64
}

// Control is the head of the file `control`, mapped by every process of the run and by whoever steers it.
type Control struct {
	Magic     uint64
	Version   uint32
	Size      uint32
	Tag       uint64 // random name of the run; also in PROPHET_RUN
	Level     uint32 // what is recorded: a bit a class
	Fast      uint32 // the same, or 0 when every call must take the slow path (serial, delays, chaos, a pause); without time once virtual time differs from real time
	Inputs    uint32
	Serial    uint32 // 1: one token for all threads
	Flight    uint64 // bytes of the flight recorder, 0 when streams are written as usual
	FlightPos uint64 // chunks ever put into the flight area
	NextProc  uint32
	NextUID   uint32
	NextSlot  uint32 // where to look for a free slot first
	SlotsEnd  uint32 // slots at and above this were never used
	Live      uint32 // slots in use
	Ended     uint32 // 1: completed by a command; late processes must not write
	TicksHz   uint64 // 0 until measured
	Ticks0    uint64 // ticks, CLOCK_MONOTONIC and CLOCK_REALTIME ns at the start of the run
	Mono0     uint64
	Real0     uint64
	Token     uint32 // serial: tid of the holder, 0 when free
	Turn      uint32 // serial: grows at each hand-over; waiters sleep on it
	Waiters   uint32
	Broken    uint32 // serial: times the token was taken from a thread that did not hand it over
	KeepMax   uint64 // bytes of one file kept before its first change
	KeepLeft  uint64 // bytes that may still be kept
	Delayed   uint32 // how many of Delays are set
	Lost      uint32 // things lost (chunks, data); the streams say which
	Delays    [8]Delay
	ShmName   [64]byte  // of the rings' file under the per-user directory, NUL-terminated
	Rooms     uint32    // which parts of the file have their space: Room…
	Chaos     uint32    // 1: threads are held up at their calls, by ChaosSeed
	Index     [256]byte // path of the index of the trace that this run re-executes; empty for a recording
	Turns     uint64    // serial: times a thread took the token; TagToken has the number
	ChaosSeed uint64

	// Pause, resume and virtual time (shim/pause.c, runtime/pause). Written by whoever has the file's lock.
	Pause     uint32 // odd while a pause is wanted or in force; grows by one at each change; parked threads sleep on it
	Pauser    uint32 // pid of who paused or resumed last
	Frozen    uint32 // times that a process has stopped or started its timers when asked by SIGCONT; counted by the processes
	OnDeath   uint32 // what is to be done when the daemon dies in a pause: OnDeath…
	Halted    uint32 // 1: those in Halts have got SIGSTOP from us and no SIGCONT yet; ours is queued with the low half of Tag, and is not for the program
	HaltsLen  uint32 // length of the list of the last pause that stopped processes
	HaltsOf   uint32 // the value of Pause that the list is of
	HaltPad   uint32
	Clocks    [ClocksVirtual]VClock
	Times     uint64              // what times() tells is virtual CLOCK_MONOTONIC + this, in its unit; 0 before the first pause
	Pauses    [PausesKept]Pausing // the last ones: that of Pause p is number p / 2 % PausesKept
	Halts     [HaltsMax]uint32
	RealShift uint64    // CLOCK_REALTIME and CLOCK_TAI are behind by that as well: a re-execution whose harness was taken off goes on from what it was told
	StackHz   uint32    // stacks a second that each thread takes at its events; 0: none
	StackCPU  uint32    // 1: a timer of CPU time takes stacks, too
	Told      [3]uint32 // processors that the program is told it may use, are online, are there; 0: as it is
	Leaps     uint32    // 1: on this machine what follows a system call returns sooner by a jump (LEAP in shim/platform.h)
	Spawner   uint64    // the process that was about to fork or to exec last; its pid namespace in the high half
}

// Replay is the head of the index that replayd makes of a trace for its re-execution: which chunks of the stream files
// are whose. It lies in shared memory, mapped by every process of the re-execution. All of it is written by replayd
// before the program starts, but for what says otherwise.
type Replay struct {
	Magic     uint64
	Version   uint32
	Threads   uint32 // entries of the table of threads, by UID; 0 is none's
	Chunks    uint32
	Procs     uint32
	Data      uint32
	Flags     uint32 // Replay…
	ThreadsAt uint64 // offsets from the start of the index
	ChunksAt  uint64
	DataAt    uint64 // ReplayChunk, too: ChunkData by thread and number
	ProcsAt   uint64
	TurnsAt   uint64 // TurnBuckets times ReplayTurn
	Size      uint64
	Events    uint64 // written by the program: compared and found the same, of threads that are over
	Diverged  uint32 // written by the program: the thread that found the first difference; 0 while there is none
	Reported  uint32 // that thread has written what follows
	Report    ReplayReport
	Signals   uint32 // signals that came between two calls and not where they were: delivered before the second
	Pids      uint32 // pids that could not be had, and so are translated
	Missed    uint32 // turns that came while their thread slept on: a call that got lost
	PadMissed uint32
	Dir       [4096]byte
	Rooted    uint32 // written by the program: its first process has come
	Outsides  uint32 // and said what it inherited
	Outside   [64]ReplayOutside
	FdsAt     uint64 // ReplayFd by thread
	Fds       uint32
	Skips     uint32
	SkipsAt   uint64 // ReplaySkip
	IDsAt     uint64 // ReplayID
	IDs       uint32 // how many there is room for, a power of two
	Unsent    uint32 // serial runs, written by the program: messages for which there was no room in their queue, less those that somebody missed
	Token     uint64 // serial runs, otherwise 0: the turn that is on << TokenTID | tid of who has come to it, 0 while nobody has (shim/token.h); written by the program
	Hold      uint32 // bits: what a thread has to look at before its next event: Hold…
	Go        uint32 // written by replayd: grows when limits or breaks have changed; threads that stand sleep on it
	Stops     uint32 // written by the program: times that a thread has come to stand; replayd sleeps on it
	Broke     uint32 // written by the program: the thread that came to a break first; replayd takes it back
	Breaks    uint32 // how many of Places are set
	PadHold   uint32
	Places    [BreaksMax]ReplayBreak
	Trace     [4200]byte // "PROPHET_TRACE=…", "PROPHET_OPTIONS=…" and "LD_PRELOAD=…" as the first process of the recorded run had them, NUL-terminated; empty: it had none
	Options   [1024]byte
	Preload   [8192]byte
	Given     [4200]byte // PROPHET_TRACE as its children had it
	Run       [24]byte   // the recorded run's tag in PROPHET_RUN, 16 hex digits
	Parted    uint32     // as Diverged, where ReplayLearn is set
	Moved     uint32     // how many ReplayMoved there is room for, a power of two; 0: none
	MovedAt   uint64
	Placed    uint32 // written by the program: signals that came between two calls where they were
	Stepped   uint32 // and instructions that were looked at for that (shim/step.c)
}

// ReplaySkip is a run of turns' numbers that no stream of a serial run has: of threads that were killed, or jumped away.
type ReplaySkip struct {
	From uint64
	Past uint64
}

// ReplayBreak is a place before which a thread stands and the world is paused. 0 is any.
type ReplayBreak struct {
	Object uint64
	Call   uint32
	UID    uint32
}

// ReplayOutside is what a descriptor was that the first process inherited: its other end is not the run's.
type ReplayOutside struct {
	Dev uint64
	Ino uint64
	FD  uint64
}

// ReplayFd says of one descriptor that a thread makes, or closes (ReplayCloses in its number), how many
// with its number the process made before, for numbers that several threads make.
type ReplayFd struct {
	FD    uint32
	Place uint32
}

// ReplayReport is what the thread that found the first difference says of it. Text is what was expected and what came,
// NUL-terminated.
type ReplayReport struct {
	UID   uint32
	Proc  uint32
	Event uint64 // number in the thread
	What  uint32 // Differs…
	Want  uint32 // calls
	Came  uint32
	Pad   uint32
	WantV uint64
	CameV uint64
	WantO uint64 // objects
	CameO uint64
	Text  [1024]byte

	// What came, as far as it was known: a call that another was expected for has not been made.
	Whole    uint32 // 1: all of it was
	TailLen  uint32
	CamePC   uint64 // call site
	CameRet  uint64
	CameF    [3]uint64
	CameSeq  uint64
	CameNote uint32
	Hashed   uint32 // 1: DataHash counts
	DataLen  uint64 // of what was read or written
	DataAt   uint64 // the first byte that differs, where the trace has them
	DataHash uint64
	Tail     [1024]byte // as in a record; paths whole
	Data     [64]byte   // from DataAt, or the start
}

// ReplayThread is a thread of the trace and where its re-execution stands.
type ReplayThread struct {
	UID     uint32
	Proc    uint32
	Parent  uint32
	Nth     uint32
	How     uint32 // Thread…
	TID     uint32 // as recorded
	First   uint32 // chunk
	Chunks  uint32
	Datum   uint32 // first of its data chunks
	Data    uint32
	State   uint32 // Turn…; written by the thread from here on
	Now     uint32 // tid of the thread that is it
	Event   uint64 // events compared
	Call    uint32 // what it is in
	Left    uint32 // 1: it ended before all of its events were asked for
	Object  uint64 // what it waits for a turn at, and which
	Turn    uint64
	At      uint64 // where that stands
	FirstFd uint32 // of its descriptors
	Fds     uint32
	Cancel  uint32 // 1: another thread has cancelled it; 2: it is where that was, and may really be cancelled
	Spent   uint32 // 1: its part of the trace is used up; 2: but for a signal, which it gets where it computes
	Until   uint64 // written by replayd: how many events it may have; it stands before the next
	Pass    uint64 // the same: the event, counted from 1, before which no break stops it
	Issued  uint64 // so many of its first events are of an issue: what files and channels of the run hold there is home's, in another order; they are really read, and data is not compared
	Timer   uint32 // it is a thread of its process's timer of that number, counted from 1, of those with SIGEV_THREAD
	Starter uint32 // who had set the timer, and starts it
	Start   uint64 // before its event of this number,
	Behind  uint64 // and has that of this number when it is over
	After   uint32 // the one that was over when it began
	Next    uint32 // that the same one starts
	Starts  uint32 // the first that it starts; written by the thread: the first that it may have to do with
	Started uint32 // 1: it was; 2: and is over, as the one that started it knows
	Wakes   uint64 // written by the thread: it sleeps, and that is when it woke, in ticks of the recording; 0: it does not
	Quick   uint64 // the same: how many of its events came as predicted, and were compared where they lie
}

// States of a thread of a re-execution.
const (
	TurnNone    = 0 // has not begun
	TurnRuns    = 1
	TurnWaits   = 2 // for its turn at Object
	TurnEnd     = 3 // its part of the trace is used up, and it asked for more: it waits for the end of its process
	TurnOver    = 4 // it has ended
	TurnStopped = 5 // by a difference somewhere
	TurnHeld    = 6 // stands before its next event, by its limit
	TurnBroke   = 7 // the same, by a break
)

// Bits of Replay.Hold, and bounds of what is held by.
const (
	HoldDiverged = 1
	HoldControl  = 2 // limits, breaks or a pause
	HoldDetached = 4 // no more: the harness is off, all record from here on

	BreaksMax  = 16
	ParkedHeld = 0xffffffff // Slot.Parked of a thread that stands by limit, break or the end of its trace: it looks at the pause word before it goes on
	NoLimit    = 1<<63 - 1
)

// What differs.
const (
	DiffersCall   = 1 // another call than the one expected
	DiffersResult = 2
	DiffersField  = 3 // which one is in WantO
	DiffersObject = 4
	DiffersTurn   = 5  // place in the order
	DiffersText   = 6  // path or other text
	DiffersData   = 7  // bytes read or written
	DiffersThread = 8  // a thread or process that the trace does not have
	DiffersMore   = 9  // asked for more than the trace has
	DiffersLess   = 10 // ended before all of the trace was asked for
	DiffersTrace  = 11 // the trace cannot be read on
	DiffersSignal = 12 // a signal that is not handled, or a fault that did not happen
	DiffersFault  = 13 // a fault, or an abort, that the trace does not have
	DiffersExit   = 14 // the process ended in another way, or with another status
)

// ReplayChunk is where a chunk's payload lies.
type ReplayChunk struct {
	Off  uint64
	Base uint64 // ticks at which its records begin
	Len  uint32
	File uint32
}

// ReplayProc is a process of the trace, and by what it is found when it comes to be.
type ReplayProc struct {
	Number  uint32
	Parent  uint32
	UID     uint32 // the thread of the parent, and which of its forks it was
	Nth     uint32
	How     uint32 // Proc…
	PID     uint32
	Main    uint32 // its first thread
	Claimed uint32 // written by the process
	Death   uint32 // signal that ended it; 0: it ended itself, became another program, or nobody saw how
	Now     uint32 // written by the process: its pid
}

// ReplayID is a process's or thread's id of the trace, or a System V object's, and what stands for it now: an open hash
// table that the program fills. Key 0 is free.
type ReplayID struct {
	Key uint64 // ID…<<32 | id
	Now uint64
}

// Kinds of ids.
const (
	IDTask = 1 // process or thread
	IDSem  = 2
	IDMsg  = 3
	IDShm  = 4
	IDIdle = 5 // a pid of now: a child that the trace does not have waits at its first call to be told (2) or ended
)

// ReplayMoved is what something is called here and in the trace, so that a program whose harness comes off does not see
// its files change: an open hash table that the program fills. Key 0 is free.
type ReplayMoved struct {
	Key uint64 // hash of a device and an inode, or of what a file's locks are found by
	Dev uint64 // that the program was told, or the name of the locks' order
	Ino uint64
}

// ReplayTurn is where threads sleep that wait for their turn at one of the objects that share it. Each is called by its
// bit when the place that it wants to be called at is taken; those that found no room are called at each.
type ReplayTurn struct {
	Word    uint32
	Waiters uint32
	Others  uint32
	Pad     uint32
	Want    [TurnWaiters]uint64 // hash of object and place; 0: free
}

// Of re-executions.
const (
	ReplayMagic = 0x59414c50_45525050
	TurnBuckets = 1024
	TurnWaiters = 30

	TokenTID    = 22             // bits of a thread id
	ReplayToken = 0xffffffffffff // stands for the token where an object is named
	ReplayQueue = 0xfffffffffffe // and this for any queue of messages

	ReplayRealtime = 1  // sleeps take their time
	ReplayWrites   = 2  // files are really written
	ReplayLearn    = 4  // who differs stands until the harness is off, and then goes on as it came
	ReplayKilled   = 8  // a signal ended the recorded run: its first process never came to the end of its own
	ReplayCut      = 16 // with ReplayLearn: threads' events end where nobody knew what they do, and not where their processes ended
	ReplayUnfed    = 32 // data that was read is not in the trace

	ReplayCloses = 1 << 31 // in ReplayFd.FD
)

// VClock is a clock of virtual time: what programs are told is the kernel's clock - Offset. Offset changes only while
// Pause is odd and nobody uses it: it is Was and how long the clock has been stopped since it read Stop.
type VClock struct {
	Offset uint64
	Was    uint64
	Stop   uint64
}

// Pausing is when virtual time stood still: ticks. Go is 0 as long as it does.
type Pausing struct {
	Stop uint64
	Go   uint64
}

// The kernel's clocks that virtual time is kept for: those that nobody sets, and that do not run alike.
const (
	ClockMonotonic = 0 // CLOCK_REALTIME and CLOCK_TAI go with it
	ClockRaw       = 1
	ClockBoot      = 2
	ClocksVirtual  = 3
)

// Bounds of the lists about pauses in Control.
const (
	PausesKept = 8
	HaltsMax   = 512 // more processes than that are stopped, too, but found again by their state
)

// What happens to a paused run when the daemon that paused it dies.
const (
	OnDeathGo   = 0
	OnDeathStay = 1
)

// Pids is a page in a file of its own, mapped by every process of a re-execution: whose turn it is to choose the next
// process or thread id (shim/pids.c). Those who may not choose themselves, as they have given up root's rights, ask
// process 1 of their world to (runtime/inside).
type Pids struct {
	Owner   uint32 // tid of who chooses, 0 when nobody does; a futex
	Waiters uint32
	Want    uint32 // the id wanted, written by the owner
	Asked   uint32 // grows with each question of an owner; process 1 sleeps on it
	Done    uint32 // the value of Asked that process 1 has answered; the owner sleeps on it
	Failed  uint32 // errno of that answer
	Server  uint32 // 1: process 1 answers
	Taken   uint32 // ids that could not be had, for the report
}

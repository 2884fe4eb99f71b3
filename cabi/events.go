package cabi

// Record tags. Append-only: a tag is never renumbered or given another meaning.
//
// V is a prefix varint (1 + 7 bits a byte, the number of zero bits at the bottom of the first byte tells how many
// bytes follow; a zero byte is followed by 8 bytes as they are), Z the same of a zigzagged number, S is V(length)
// and as many bytes, P is a path: V(bytes shared with the path before it in this thread), S(the rest). dt are
// ticks since the thread's time cursor, which every dt and duration moves on.
//
// All that predicts (keys, the last path, the last pc) is forgotten at the start of a chunk and at TagSignal and
// TagSigRet, so that a chunk can be read alone and a handler cannot disturb what it interrupted.
const (
	TagEnd     = 0  // never written; a zero byte is damage
	TagKey     = 1  // V key-FirstKey, V call, Z pc - last pc, V object's uid, V object's number: (re)defines a key; its fields become 0
	TagObject  = 2  // V uid, V number, V type, V address or fd, S detail: first sight of an object in this process
	TagCPU     = 3  // V dt, V ns of CPU time that the thread has used, absolute
	TagTime    = 4  // V ticks, absolute: sets the time cursor
	TagSignal  = 5  // V dt, V signal, V call it interrupted (0: between two), Z si_code (0 when unknown), V si_pid
	TagSigRet  = 6  // V dt, V signal: its handler returned
	TagData    = 7  // S: input data of the event before
	TagHash    = 8  // 8 bytes: xxhash64 of the data of the event before
	TagBigData = 9  // V data chunk number, V length: input data of the event before, in a chunk of its own
	TagThread  = 10 // V uid, V parent's uid, V which creation of the parent, V tid, V how (ThreadCreated …)
	TagProc    = 11 // V number, V parent's number, V parent thread's uid, V which fork of that thread, V pid, V ppid, V how (ProcRoot …), S exe NUL cwd NUL args NUL-separated
	TagModule  = 12 // V lowest address, V bytes, V load bias, S path, S build id
	TagRSS     = 13 // V resident pages at the time cursor
	TagMark    = 14 // V dt, V kind (MarkPoint …), S name
	TagLeft    = 15 // V dt, V call, V ticks it began before that: a call that was left by a jump, an exception or cancellation
	TagLost    = 16 // V reason (Lost…), V count
	TagLevel   = 17 // V ticks, absolute, V level: switched from outside (control chunks)
	TagInput   = 18 // S: structured result of the event before (struct stat, addresses, …), fields of V and Z as its row says
	TagExit    = 19 // V dt, V how (Exit…), Z status, V rchar, V wchar, V own bytes written, V cpu ns of the process, V children's cpu ns
	TagKept    = 20 // V dev, V ino, V size, V how (Kept…), S path
	TagUnseen  = 21 // V what (Unseen…), V argument, S detail
	TagFork    = 22 // V dt, V which fork of this thread, V child's pid, V how: a child exists that may never record an event
	TagClock   = 23 // V ticks, V CLOCK_MONOTONIC ns, V CLOCK_REALTIME ns: read together; calibrates ticks
	TagToken   = 24 // V turn<<3|how (Token…): the token of a serial run came to this thread (shim/serial.h)
	TagWas     = 25 // V dev, V ino, V mode, V uid, V gid, V mtime ns, S text of a link: a file before the run changed it; the KEPT or the call that follows says which
	TagSigInfo = 26 // V V V V: the 32 bytes behind si_code, as 64-bit Linux lays them out, of the signal before; where its handler asked for them
	TagFrames  = 27 // V number, S: Z return address - the one before (the first: as it is), innermost first (of a place that a signal interrupted: one more): defines a stack, numbered from 0 since all that predicts was forgotten
	TagStack   = 28 // V number, V bits (Stack…): who called the call site of the event before
	TagSample  = 29 // V dt, V number, V ns of CPU time that the thread has used, absolute: a timer of CPU time found the thread there; the stack's first address is where
	TagPlace   = 30 // V pc, V stack pointer, V V V: where the program was when the signal before came, between two calls; hashes of 12 registers (shim/step.c), all 0: it was about to return there from a call (with PlaceOut in the stack pointer: from the one before). Of one that came during a call: the kernel had done that, all but the pc are 0
	TagOurs    = 31 // V dt, V ticks: as many before this were the recorder's work and not the program's (0: all of dt); the first of a process tells of its start, before its stream, too
	TagLimit   = 32 // first tag that is not defined yet; keys are from FirstKey on
)

// TagLayout is what follows each control tag: T a step in time, A a time, V and Z numbers, S a string, 8 eight bytes.
// Those of TagKey stand for themselves.
var TagLayout = [TagLimit]string{
	TagKey: "VVZVV", TagObject: "VVVVS", TagCPU: "TV", TagTime: "A", TagSignal: "TVVZV", TagSigRet: "TV", TagData: "S", TagHash: "8",
	TagBigData: "VV", TagThread: "VVVVV", TagProc: "VVVVVVVS", TagModule: "VVVSS", TagRSS: "V", TagMark: "TVS", TagLeft: "TVV",
	TagLost: "VV", TagLevel: "AV", TagInput: "S", TagExit: "TVZVVVVV", TagKept: "VVVVS", TagUnseen: "VVS", TagFork: "TVVV",
	TagClock: "VVV", TagToken: "V", TagWas: "VVVVVVS", TagSigInfo: "VVVV", TagFrames: "VS",
	TagStack: "VV", TagSample: "TVV", TagPlace: "VVVVV", TagOurs: "TV",
}

// An event is V(key + FirstKey) V(dt<<1 | EvMore) and, with EvMore, the mask byte and the fields it names. So an
// event that is as predicted and begins and ends at once takes two or three bytes.
const EvMore = 1 // the mask byte follows

// Bits of an event's mask byte. Fields follow in this order: V duration first, then what is not as predicted:
// ret, f1, f2 and f3 are predicted to be the key's last ones; seq to be the key's last place + 1, or 0 before the key
// has had one (calls without order never have; one that took none, as a failed try, has 0). Each is written as
// Z(actual - predicted).
const (
	MaskRet  = 1
	MaskF1   = 2
	MaskF2   = 4
	MaskF3   = 8
	MaskSeq  = 16
	MaskTail = 32 // S: what the row says (paths, further numbers)
	MaskNote = 64 // V note bits (Note…)

	MaskDuration = 128 // V duration, before all other fields
)

// Note bits of an event.
const (
	NoteWaited   = 1  // the object was held by another when the call began
	NoteCut      = 2  // the tail or the data was cut at its bound
	NoteVforked  = 4  // issued by a vforked child on its parent's stack
	NoteDelayed  = 8  // begun later by an injected delay
	NoteOnlyTime = 16 // its data could not be read
)

// Bits of TagStack. Without StackWait and StackHolder it was taken as the thread had none for the interval of its rate.
const (
	StackWait   = 1 // the call waited for long
	StackHolder = 2 // another thread waits for a lock that this one has, or had when that was seen
	StackCut    = 4 // there are more frames
	StackLost   = 8 // the last frame's caller could not be found: code without unwind tables or frame pointers

	FramesMax = 128 // of one stack
)

// How a thread came to be.
const (
	ThreadMain    = 0
	ThreadCreated = 1
	ThreadForked  = 2 // the one thread of a forked child
	ThreadFound   = 3 // not created through a call we saw; Nth, if not 0: of which timer with SIGEV_THREAD of its process it is, counted from 1
)

// How a process came to be.
const (
	ProcRoot   = 0
	ProcForked = 1
	ProcExeced = 2 // a new program in a process of the run, or one spawned by it
)

// How a process ended.
const (
	ExitNormal = 0 // exit, or return from main
	ExitQuick  = 1 // _exit, _Exit, quick_exit
	ExitAbort  = 2
	ExitExec   = 3
	ExitSignal = 4 // found dead by a reader; status is unknown
)

// How the token of a serial run came to a thread.
const (
	TokenGiven = 0
	TokenDead  = 1 // its holder died
	TokenSlept = 2 // its holder slept in a call that is not seen: it was stopped, or goes on beside (shim/serial.h)
	TokenSpun  = 3 // its holder computed, or spun, for longer than its time: the same
	TokenHere  = 4 // flag: taken right here; without it, at the end of the event that follows, which took none if the number is 0
)

// PlaceOut is a flag of TagPlace's stack pointer: the signal came on the way out of the call before. Only serial runs tell.
const PlaceOut = 1

// Marks.
const (
	MarkPoint = 0
	MarkBegin = 1
	MarkEnd   = 2
)

// What was lost.
const (
	LostWrite  = 1 // a chunk could not be written: errno in count
	LostRing   = 2 // no shared memory for the ring: its tail cannot be recovered after a kill
	LostThread = 3 // a thread could not be recorded
	LostSignal = 4
)

// How an original file was kept.
const (
	KeptClone  = 0 // reflink
	KeptCopy   = 1
	KeptNot    = 2 // over the bound
	KeptFailed = 3
)

// What cannot be seen.
const (
	UnseenStatic  = 1 // exec of a static program
	UnseenSetuid  = 2 // exec of a set-uid or set-gid program
	UnseenForeign = 3 // exec of a program of another architecture
	UnseenUring   = 4
	UnseenSyscall = 5 // syscall() with a number that is not recorded
	UnseenFutex   = 6 // syscall(SYS_futex) on an object
	UnseenGoLike  = 7 // exec of a program that issues its own system calls
	UnseenSandbox = 8 // a seccomp filter forbids what recording needs: the process is recorded up to there
	UnseenCPU     = 9 // CPU time by a timer's stacks: the program uses the timer's signal itself
	UnseenStdio   = 8 // the C library's streams: its tables of functions are not as known
)

// Kinds of objects. Append-only.
const (
	ObjNone       = 0
	ObjMutex      = 1
	ObjRwlock     = 2
	ObjCond       = 3
	ObjBarrier    = 4
	ObjSem        = 5
	ObjSpin       = 6
	ObjOnce       = 7
	ObjGuard      = 8
	ObjStdio      = 9 // a FILE and its lock
	ObjFd         = 10
	ObjPath       = 11
	ObjThread     = 12
	ObjProcess    = 13
	ObjClock      = 14
	ObjTimer      = 15
	ObjFutex      = 16
	ObjRandState  = 17
	ObjSharedSync = 18 // a synchronisation object in memory shared by processes
)

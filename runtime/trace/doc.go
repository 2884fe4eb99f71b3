// Package trace reads and writes traces: the record of what every thread of every process of one run asked of the
// machine. It imports nothing of ours but cabi, which states the layout; it opens no process and maps no memory.
//
// # A trace
//
// A trace is a directory NAME.prophet,
//
//	meta.json    what ran, where and how: written at start, completed when the run has ended (Meta)
//	stream-NN    chunks, appended by the processes of the run (O_APPEND); a process uses file number%32
//	kept/        what files held before the run first changed them, each named <dev>-<ino> in hex
//	control      mapped by the run's processes; present while the run is live or until it is recovered
//
// or one packed file NAME.prophet made of it (see pack.go).
//
// # Chunks
//
// A chunk is a header of 64 bytes (cabi.Chunk) and a payload. The header has a checksum of itself and one of the
// payload. A thread's stream is its chunks of kind ChunkEvents in the order of Seq. Two chunks may have one Seq, when
// another thread or a later command wrote the tail of a thread that was still writing: the longer one counts.
// Every chunk can be read alone: nothing that predicts outlives it.
//
// # Records
//
// The payload of an events chunk is a sequence of records. A record opens with a prefix varint x. Is x below
// cabi.FirstKey it is a control record with that tag, laid out as cabi says beside each tag. Otherwise it is an event of
// key x-FirstKey, which an earlier TagKey record of the chunk defined as call, call site and object:
//
//	event = V(FirstKey+key) V(dt<<1|EvMore) [mask byte, [V duration], fields]
//
// begin = cursor+dt, end = begin+duration (none: 0), and the cursor moves to end. A field that is not in the mask is as
// predicted: ret, f1, f2 and f3 as the key's last ones, seq the key's last place plus one, none before it has had one. The tail
// holds what the row's path, num, snum and str steps say, in their order. Records of input data (TagHash,
// TagData, TagBigData, TagInput) belong to the event right before them.
//
// # Trust
//
// Nothing in a trace is trusted: lengths are checked before use, names in it are text to be shown and never paths to be
// opened. What does not parse becomes a *Damage, which names file, offset and reason, and reading goes on at the next
// whole chunk.
//
// # Memory and concurrency
//
// A Trace keeps an index of about 56 bytes a chunk, an Iter the chunk it is in. A Trace may be used by many goroutines
// at once, an Iter or a Merge by one. A *Record and all that it points to is valid until the next call of Next.
package trace

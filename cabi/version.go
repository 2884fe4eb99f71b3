package cabi

// FormatVersion numbers the trace format. Each version has a sentence here, and a trace of it under
// runtime/trace/testdata that CI reads for ever.
//
//	1: chunks of 64 KiB that can be read alone; keys, prefix varints, per-object sequence numbers.
const FormatVersion = 1

// Version is Prophet's own version, printed by every program of it.
const Version = "0.1.0"

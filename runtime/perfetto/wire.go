package perfetto

import "encoding/binary"

// Protocol buffers by hand: this package writes a dozen messages, each in one pass and without a tree of objects. Fields
// are named after those of Perfetto's published schema (protos/perfetto/trace), whose numbers never change.

// Field numbers.
const (
	tracePacket = 1 // Trace.packet

	packetClockSnapshot   = 6 // TracePacket
	packetTimestamp       = 8
	packetSequence        = 10
	packetTrackEvent      = 11
	packetInternedData    = 12
	packetSequenceFlags   = 13
	packetDefaults        = 59
	packetTrackDescriptor = 60
	packetFirst           = 87

	defaultsClock = 58 // TracePacketDefaults.timestamp_clock_id

	snapshotClocks  = 1 // ClockSnapshot
	snapshotPrimary = 2
	clockID         = 1 // ClockSnapshot.Clock
	clockTimestamp  = 2

	internCategories = 1 // InternedData
	internNames      = 2
	internKeys       = 3  // debug_annotation_names
	internValues     = 29 // debug_annotation_string_values
	internIID        = 1  // EventCategory, EventName, DebugAnnotationName, InternedString
	internText       = 2

	trackUUID    = 1 // TrackDescriptor
	trackName    = 2
	trackProcess = 3
	trackThread  = 4
	trackParent  = 5
	trackCounter = 8

	processPID     = 1 // ProcessDescriptor
	processCmdline = 2
	processName    = 6
	processStart   = 7

	threadPID  = 1 // ThreadDescriptor
	threadTID  = 2
	threadName = 5

	counterUnit = 3 // CounterDescriptor

	eventCategory    = 3 // TrackEvent.category_iids
	eventAnnotation  = 4
	eventType        = 9
	eventName        = 10 // name_iid
	eventTrack       = 11
	eventCounter     = 30 // counter_value
	eventFlow        = 47
	eventFlowEnds    = 48
	eventStack       = 55 // callstack
	stackFrame       = 1  // TrackEvent.Callstack.frames
	frameFunction    = 1  // TrackEvent.Callstack.Frame.function_name
	annotationName   = 1  // DebugAnnotation.name_iid
	annotationBool   = 2
	annotationUint   = 3
	annotationInt    = 4
	annotationIntern = 17 // string_value_iid
	annotationText   = 6
)

// Values.
const (
	clockRealtime  = 1
	clockMonotonic = 3

	sliceBegin = 1
	sliceEnd   = 2
	instant    = 3
	counter    = 4

	unitBytes = 3

	stateCleared = 1
	needsState   = 2
)

const (
	wireVarint = 0
	wireFixed  = 1
	wireBytes  = 2
)

func appendVarint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func appendTag(b []byte, field, wire uint64) []byte { return binary.AppendUvarint(b, field<<3|wire) }

func appendUint(b []byte, field, v uint64) []byte {
	return appendVarint(appendTag(b, field, wireVarint), v)
}

func appendFixed(b []byte, field, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendTag(b, field, wireFixed), v)
}

func appendBytes[T ~string | ~[]byte](b []byte, field uint64, s T) []byte {
	return append(appendVarint(appendTag(b, field, wireBytes), uint64(len(s))), s...)
}

package trace

import (
	"fmt"
	"math"
)

// The structured results of calls for time and the machine's shape; shim/steps_time.c says how each is written.
func init() {
	Inputs["tms"] = InputSpec{Fields: []FieldSpec{{"user", FieldNum}, {"system", FieldNum}, {"children_user", FieldNum}, {"children_system", FieldNum}}}
	Inputs["rusage"] = InputSpec{Fields: []FieldSpec{
		{"user_us", FieldNum}, {"system_us", FieldNum}, {"maxrss", FieldNum}, {"ixrss", FieldNum}, {"idrss", FieldNum},
		{"isrss", FieldNum}, {"minflt", FieldNum}, {"majflt", FieldNum}, {"nswap", FieldNum}, {"inblock", FieldNum},
		{"oublock", FieldNum}, {"msgsnd", FieldNum}, {"msgrcv", FieldNum}, {"nsignals", FieldNum}, {"nvcsw", FieldNum}, {"nivcsw", FieldNum},
	}}
	Inputs["itimerval"] = InputSpec{Fields: []FieldSpec{{"value_us", FieldNum}, {"interval_us", FieldNum}}}
	Inputs["sysinfo"] = InputSpec{Fields: []FieldSpec{
		{"uptime", FieldNum}, {"load1", FieldNum}, {"load5", FieldNum}, {"load15", FieldNum}, {"totalram", FieldNum}, {"freeram", FieldNum},
		{"sharedram", FieldNum}, {"bufferram", FieldNum}, {"totalswap", FieldNum}, {"freeswap", FieldNum}, {"procs", FieldNum},
	}}
	Inputs["utsname"] = InputSpec{Fields: []FieldSpec{
		{"sysname", FieldStr}, {"nodename", FieldStr}, {"release", FieldStr}, {"version", FieldStr}, {"machine", FieldStr}, {"domain", FieldStr},
	}}
	Inputs["loads"] = InputSpec{Decode: decodeLoads}
	Inputs["cpus"] = InputSpec{Decode: decodeCPUs}
	Inputs["limits"] = InputSpec{Decode: decodeLimits}
	Inputs["groups"] = InputSpec{Fields: []FieldSpec{{"gid", FieldNum}}, Repeat: true}
}

func decodeLoads(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for i := 0; len(s.b) > 0 && !s.bad; i++ {
		out = append(out, strField(fmt.Sprintf("load%d", i+1), fmt.Sprintf("%.2f", math.Float64frombits(s.v()))))
	}
	return out, !s.bad
}

func decodeCPUs(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	var text string
	run := -1
	end := func(at int) {
		if run < 0 {
			return
		}
		if text != "" {
			text += ","
		}
		text += fmt.Sprint(run)
		if at-1 > run {
			text += fmt.Sprintf("-%d", at-1)
		}
		run = -1
	}
	at := 0
	for len(s.b) > 0 && !s.bad {
		w := s.v()
		for i := range 64 {
			if w>>i&1 == 0 {
				end(at)
			} else if run < 0 {
				run = at
			}
			at++
		}
	}
	end(at)
	return append(out, strField("cpus", text)), !s.bad
}

func decodeLimits(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	which := s.v()
	for i, name := range []string{"new", "old"} {
		if which>>i&1 != 0 {
			out = append(out, strField(name, fmt.Sprintf("%s/%s", limitText(s.v()), limitText(s.v()))))
		}
	}
	return out, !s.bad && len(s.b) == 0
}

func limitText(v uint64) string {
	if v == math.MaxUint64 {
		return "unlimited"
	}
	return fmt.Sprint(v)
}

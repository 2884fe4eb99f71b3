package trace

// Structured results of calls about processes and signals: see shim/steps_proc.h.
func init() {
	Inputs["siginfo"] = InputSpec{Fields: []FieldSpec{
		{"signal", FieldSnum}, {"code", FieldSnum}, {"pid", FieldNum}, {"uid", FieldNum}, {"value", FieldSnum}, {"high", FieldNum},
	}, Least: 5} // high: the upper half of a value that has one
	Inputs["aio"] = InputSpec{Decode: decodeAio}
	Inputs["usage"] = InputSpec{Fields: []FieldSpec{
		{"user", FieldTime}, {"system", FieldTime}, {"maxrss", FieldNum}, {"minflt", FieldNum}, {"majflt", FieldNum},
		{"inblock", FieldNum}, {"oublock", FieldNum}, {"nvcsw", FieldNum}, {"nivcsw", FieldNum},
	}}
}

// decodeAio reads which operations of a list were over, and what they came to: bytes, or an error.
func decodeAio(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for len(s.b) > 0 && !s.bad {
		out = append(out, numField("over", s.v()), Field{FieldSpec: FieldSpec{"result", FieldSnum}, Num: uint64(s.z())})
	}
	return out, !s.bad
}

package trace

// Structured results of calls about processes and signals: see shim/steps_proc.h.
func init() {
	Inputs["siginfo"] = InputSpec{Fields: []FieldSpec{
		{"signal", FieldSnum}, {"code", FieldSnum}, {"pid", FieldNum}, {"uid", FieldNum}, {"value", FieldSnum}, {"high", FieldNum},
	}, Least: 5} // high: the upper half of a value that has one
	Inputs["usage"] = InputSpec{Fields: []FieldSpec{
		{"user", FieldTime}, {"system", FieldTime}, {"maxrss", FieldNum}, {"minflt", FieldNum}, {"majflt", FieldNum},
		{"inblock", FieldNum}, {"oublock", FieldNum}, {"nvcsw", FieldNum}, {"nivcsw", FieldNum},
	}}
}

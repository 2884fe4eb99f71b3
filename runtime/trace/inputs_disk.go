package trace

// How the results of calls on files are laid out (shim/steps_disk.c). Names are kept apart by a NUL in lists of
// extended attributes, as the kernel gives them.
func init() {
	statfs := []FieldSpec{
		{"type", FieldNum}, {"bsize", FieldNum}, {"blocks", FieldNum}, {"bfree", FieldNum}, {"bavail", FieldNum},
		{"files", FieldNum}, {"ffree", FieldNum}, {"fsid", FieldNum}, {"namelen", FieldNum}, {"frsize", FieldNum}, {"flags", FieldNum},
	}
	statvfs := []FieldSpec{
		{"bsize", FieldNum}, {"frsize", FieldNum}, {"blocks", FieldNum}, {"bfree", FieldNum}, {"bavail", FieldNum},
		{"files", FieldNum}, {"ffree", FieldNum}, {"favail", FieldNum}, {"fsid", FieldNum}, {"flag", FieldNum}, {"namemax", FieldNum},
	}
	statx := []FieldSpec{
		{"mask", FieldNum}, {"dev", FieldNum}, {"ino", FieldNum}, {"mode", FieldOct}, {"nlink", FieldNum}, {"uid", FieldNum},
		{"gid", FieldNum}, {"rdev", FieldNum}, {"size", FieldNum}, {"blksize", FieldNum}, {"blocks", FieldNum},
		{"attributes", FieldNum}, {"attributes_mask", FieldNum},
		{"atime", FieldTime}, {"mtime", FieldTime}, {"ctime", FieldTime}, {"btime", FieldTime},
	}
	Inputs["statfs"] = InputSpec{Fields: statfs}
	Inputs["statvfs"] = InputSpec{Fields: statvfs}
	Inputs["statx"] = InputSpec{Fields: statx}
	Inputs["text"] = InputSpec{Fields: []FieldSpec{{"text", FieldStr}}}
	Inputs["globbed"] = InputSpec{Decode: decodeGlobbed}
	Inputs["cstr"] = InputSpec{Fields: []FieldSpec{{"text", FieldStr}}}
	Inputs["bytes"] = InputSpec{Fields: []FieldSpec{{"bytes", FieldHex}}}
	Inputs["flock"] = InputSpec{Fields: []FieldSpec{
		{"type", FieldNum}, {"whence", FieldNum}, {"start", FieldSnum}, {"len", FieldSnum}, {"pid", FieldSnum},
	}}
	Inputs["dirent"] = InputSpec{Fields: []FieldSpec{
		{"ino", FieldNum}, {"off", FieldNum}, {"type", FieldNum}, {"name", FieldStr},
	}}
}

func decodeGlobbed(out []Field, b []byte) ([]Field, bool) {
	s := small{b: b}
	for len(s.b) > 0 && !s.bad {
		out = append(out, strField("found", string(s.s())))
	}
	return out, !s.bad
}

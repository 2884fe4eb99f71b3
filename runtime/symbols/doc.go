// Package symbols finds the functions, files and lines behind addresses of modules, after the run and on any machine that has
// the files.
//
// A module's own file counts only if its build id is the one that the trace has: another version of it would give names that
// are wrong. What was stripped is found in a separate file: /usr/lib/debug/.build-id/xx/….debug, or by .gnu_debuglink, whose
// checksum must fit. Of these, in this order: DWARF (functions, inlined ones too, files and lines), the symbol tables, and for
// code of Go the table that each Go program has for itself, stripped or not. What nothing tells has no frame.
//
// Paths come from the trace, so only regular files are opened, and only to be read for their own build id first; nothing of
// them but names leaves.
//
// Names in files are text from a stranger: they are cut at a length, and whoever prints them escapes them. A damaged file is
// a note, never a failure; files and sections over a bound are not read. One module is open at a time.
package symbols

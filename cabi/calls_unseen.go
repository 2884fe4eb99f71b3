package cabi

// What passes by the other wrappers. IDs of this part are 1100 to 1199.
var callsUnseen = []Call{
	{ID: 1100, Name: "syscall", Sig: "long syscall(long number, ...)", Class: Sync, Body: Hand, Block: true, Rec: "obj futex a; f1 number; f2 a; f3 b", Reexec: "order", Skip: "f2,f3", Issue: "same", Support: Partial, Test: "syscall", Note: "Numbers are those of amd64. What it does is not recorded as the function for it would be; TagUnseen says so once a number, and once a futex"},
	{ID: 1101, Name: "dlclose", Sig: "int dlclose(void *handle)", Class: Memory, Block: true, Rec: "ret int; pre nested; post unloaded", Reexec: "real", Issue: "skip", Test: "dlclose", Note: "Recorded because another module may come to lie where one was: the trace tells their call sites from each other"},
}

package cabi

// Time and timing. IDs of this part start at 800.
var callsTime = []Call{
	{ID: 800, Name: "clock_gettime", Sig: "int clock_gettime(clockid_t clk, struct timespec *ts)", Class: Time, Body: Hand, Rec: "f1 ns; f2 clk", Reexec: "feed", Issue: "skip", Test: "clock"},
}

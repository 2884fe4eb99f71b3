package main

/*
#include "zlayout.h"
*/
import "C"

import "runtime"

// goVersion returns C memory that lives as long as the process. The version comes from the C header: package cabi would
// bring the table of calls, and with it thousands of relocations that every exec pays for.
//
//export goVersion
func goVersion() *C.char {
	return C.CString(C.PROPHET_Version + " " + runtime.Version())
}

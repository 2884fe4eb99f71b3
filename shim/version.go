package main

import "C"

import (
	"runtime"

	"prophet/cabi"
)

// goVersion returns C memory that lives as long as the process.
//
//export goVersion
func goVersion() *C.char {
	return C.CString(cabi.Version + " " + runtime.Version())
}

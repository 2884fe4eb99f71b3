// Command shim is libprophet.so: the C files of this directory, which run inside the traced program (rules.h states
// their laws), and a Go side that sleeps until a Go-backed function of the C ABI is called.
package main

/*
#cgo CFLAGS: -O2 -g1 -std=gnu11 -Wall -Wextra -Werror -fvisibility=hidden -fexceptions -fasynchronous-unwind-tables -fno-strict-aliasing -fno-stack-protector -fomit-frame-pointer -Wno-nonnull-compare -I${SRCDIR}/../cabi
#cgo LDFLAGS: -Wl,-z,now
*/
import "C"

func main() {}

// Command gen prints every generated file (their names begin with z) from package cabi. It needs no network and
// writes nothing else. With -check it changes nothing and fails when a file is not what it would print.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

type file struct {
	path string
	make func() ([]byte, error)
}

var files = []file{
	{"cabi/zlayout.h", layout},
	{"cabi/zprogram.h", program},
	{"cabi/zcalls.h", callIDs},
	{"cabi/zcallnames.h", callNames},
	{"cabi/zrows.h", rows},
	{"cabi/ztags.h", tags},
	{"shim/zwrap.c", wrappers},
	{"shim/znumber.c", numbers},
	{"shim/zreplay.h", replay},
	{"shim/zexports_amd64.map", exportsAMD64},
	{"shim/zexports_arm64.map", exportsARM64},
}

func main() {
	check := flag.Bool("check", false, "fail when a generated file is not current")
	root := flag.String("C", ".", "top of the source tree")
	flag.Parse()
	stale := 0
	for _, f := range files {
		want, err := f.make()
		if err != nil {
			fmt.Fprintf(os.Stderr, "gen: %s: %v\n", f.path, err)
			os.Exit(1)
		}
		path := filepath.Join(*root, f.path)
		have, err := os.ReadFile(path)
		if err == nil && bytes.Equal(have, want) {
			continue
		}
		if *check {
			fmt.Fprintf(os.Stderr, "gen: %s is not current: run 'make generate'\n", f.path)
			stale++
			continue
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "gen: %v\n", err)
			os.Exit(1)
		}
	}
	if stale > 0 {
		os.Exit(1)
	}
}

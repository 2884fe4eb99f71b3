package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"prophet/cabi"
)

// What a reader in C needs to know of a row, as one string: its fields' names, each NUL-terminated.
//
//	ROW(id, class, result, fields of the tail, "name" "object" "f1" "f2" "f3" and, for each of the tail, kind and name)
//
// The kinds are n, z, s and p for num, snum, str and path.
const rowsBanner = banner + "/* ROW(id, class, result, tail fields, text): tools/gen/rows.go says what the text is. */\n"

// tailMax is how many parts the writer's events have (PARTS in shim/ring.h).
const tailMax = 8

func rows() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(rowsBanner)
	kinds := map[string]string{"num": "n", "snum": "z", "str": "s", "path": "p"}
	results := []string{"errno", "err", "ptr", "int", "uint", "void"}
	for _, c := range cabi.Calls {
		var obj string
		var f [3]string
		var tail []string
		result, paths := 0, 0
		for _, step := range strings.Split(c.Rec, ";") {
			w := strings.Fields(step)
			if len(w) == 0 {
				continue
			}
			arg := ""
			if len(w) > 1 {
				arg, _, _ = strings.Cut(w[1], "=")
			}
			switch w[0] {
			case "ret":
				if result = slices.Index(results, arg); result < 0 {
					return nil, fmt.Errorf("%s: result %q is not known", c.Name, arg)
				}
			case "obj":
				obj = arg
			case "f1", "f2", "f3":
				f[w[0][1]-'1'] = arg
			case "num", "snum", "str", "path":
				tail = append(tail, kinds[w[0]]+arg)
			}
			if w[0] == "path" {
				paths++
			}
		}
		if paths > 1 || len(tail) > tailMax {
			return nil, fmt.Errorf("%s: at most one path and %d parts in a tail", c.Name, tailMax)
		}
		text := append([]string{c.Name, obj, f[0], f[1], f[2]}, tail...)
		fmt.Fprintf(&b, "ROW(%d, %d, %d, %d, \"%s\")\n", c.ID, c.Class, result, len(tail), strings.Join(text, `\0`))
	}
	return b.Bytes(), nil
}

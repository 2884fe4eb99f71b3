// Command goread reads a trace through package client: a small `prophet dump --json`. Built without cgo.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"prophet/cabi/client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: goread TRACE")
		os.Exit(2)
	}
	t, err := client.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "read:", err)
		os.Exit(1)
	}
	defer t.Close()
	w := bufio.NewWriter(os.Stdout)
	status := 0
	for e, err := range t.Events() {
		if err != nil {
			fmt.Fprintln(os.Stderr, "read:", err)
			status = 1
			continue
		}
		show(w, e)
	}
	w.Flush()
	os.Exit(status)
}

func show(w *bufio.Writer, e *client.Event) {
	put := func(key string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(w, ",%q:%s", key, b)
	}
	fmt.Fprintf(w, "{\"t\":%d", e.Begin)
	put("thread", e.Thread)
	if e.Kind == client.MarkSeen {
		put("record", "mark")
		put("kind", e.Call)
	} else {
		put("n", e.Number)
		put("call", e.Call)
		put("class", e.Class)
		if e.Object != "" {
			put("object", e.Object)
		}
		put("ret", e.Ret)
		put("error", int(e.Errno))
	}
	for _, f := range e.Fields {
		switch {
		case f.Text != nil:
			put(f.Name, string(f.Text))
		case f.Signed:
			put(f.Name, f.Number)
		default:
			put(f.Name, uint64(f.Number))
		}
	}
	if e.Order != 0 {
		put("seq", e.Order)
	}
	if e.Flags&client.Timed != 0 {
		put("took", e.End-e.Begin)
	}
	w.WriteString("}\n")
}

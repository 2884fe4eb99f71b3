package tables

import (
	"fmt"
	"reflect"
	"strings"
)

// Column is a column of a table.
type Column struct {
	Name string
	Type string // BIGINT, VARCHAR, BOOLEAN
	Doc  string
}

// Table is a table.
type Table struct {
	Name    string
	Doc     string
	Columns []Column
}

// Schema are the tables that Write makes, each into a file of its name.
var Schema = []Table{
	{"events", "Every call that was recorded, by the time it began.", columns[Event]()},
	{"links", "Which event let which other go on.", columns[Link]()},
	{"objects", "What events acted on, with counts over the events that were exported.", columns[Object]()},
	{"threads", "All threads, with counts over the events that were exported.", columns[Thread]()},
	{"processes", "All processes: a program is one, and what it execs is another.", columns[Process]()},
	{"modules", "Files that processes had mapped for execution: what call sites are in.", columns[Module]()},
	{"stacks", "Stacks, a row a frame, where the recording took some.", columns[Stack]()},
	{"samples", "Where threads used CPU time, where the recording took samples.", columns[Sample]()},
	{"marks", "What the program itself marked (prophet.h).", columns[Mark]()},
}

func columns[T any]() []Column {
	var list []Column
	t := reflect.TypeFor[T]()
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		c := Column{Name: name, Doc: f.Tag.Get("doc")}
		switch f.Type.Kind() {
		case reflect.String:
			c.Type = "VARCHAR"
		case reflect.Bool:
			c.Type = "BOOLEAN"
		default:
			c.Type = "BIGINT"
		}
		list = append(list, c)
	}
	return list
}

// Page is the schema for people.
func Page() string {
	var b strings.Builder
	b.WriteString(`Tables of prophet export --parquet DIR and --csv DIR, each in a file of its name. Times are ns; begin_ns and the like count
from the start of the run. Nothing is null: text that is not there is '', a number 0. Text is UTF-8: control characters
and other bytes are shown as \x1b. In CSV, text that begins with = + - @ or ' has a ' before it, as spreadsheets would
execute it otherwise, and booleans are true and false. Columns are only ever added, at the end.
`)
	for _, t := range Schema {
		fmt.Fprintf(&b, "\n%s: %s\n", t.Name, t.Doc)
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "  %-12s %-8s %s\n", c.Name, c.Type, c.Doc)
		}
	}
	return b.String()
}

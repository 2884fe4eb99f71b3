package tables

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// cells makes lines of CSV.
type cells struct {
	b     []byte
	first bool
}

func (c *cells) sep() {
	if !c.first {
		c.b = append(c.b, ',')
	}
	c.first = false
}

func (c *cells) num(v int64) {
	c.sep()
	c.b = strconv.AppendInt(c.b, v, 10)
}

func (c *cells) flag(v bool) {
	c.sep()
	c.b = strconv.AppendBool(c.b, v)
}

// text is quoted where it must be. What a spreadsheet would take for a formula gets a ' before it, and so does what begins
// with one, so that it can be taken away again.
func (c *cells) text(s string) {
	c.sep()
	if s == "" {
		return
	}
	danger := strings.IndexByte("=+-@'\t\r", s[0]) >= 0
	if !danger && strings.IndexByte(s, '"') < 0 && strings.IndexByte(s, ',') < 0 && strings.IndexByte(s, '\n') < 0 && s[0] != ' ' {
		c.b = append(c.b, s...)
		return
	}
	c.b = append(c.b, '"')
	if danger {
		c.b = append(c.b, '\'')
	}
	for i := range len(s) {
		if s[i] == '"' {
			c.b = append(c.b, '"')
		}
		c.b = append(c.b, s[i])
	}
	c.b = append(c.b, '"')
}

// row is a row of any table.
type row[T any] interface {
	*T
	cells(c *cells)
}

// csvTable writes rows as lines, under a line with the columns' names.
type csvTable[T any, P row[T]] struct {
	w *bufio.Writer
	c cells
}

func newCSV[T any, P row[T]](w io.Writer) *csvTable[T, P] {
	t := &csvTable[T, P]{w: bufio.NewWriterSize(w, 1<<18)}
	for i, c := range columns[T]() {
		if i > 0 {
			t.w.WriteByte(',')
		}
		t.w.WriteString(c.Name)
	}
	t.w.WriteByte('\n')
	return t
}

func (t *csvTable[T, P]) write(rows []T) error {
	for i := range rows {
		t.c.b, t.c.first = t.c.b[:0], true
		P(&rows[i]).cells(&t.c)
		t.c.b = append(t.c.b, '\n')
		if _, err := t.w.Write(t.c.b); err != nil {
			return err
		}
	}
	return nil
}

func (t *csvTable[T, P]) close(map[string]string) error { return t.w.Flush() }

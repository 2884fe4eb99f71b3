package scrub

import (
	"strings"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// treatment is what is done with a field.
type treatment uint8

const (
	gone      treatment = iota // 0 or nothing: what no list below names
	plain                      // stays
	memory                     // an address, or a number that may be one
	value                      // a number that may be data: the same, unless inputs stay
	drawn                      // a random number
	port                       // of the network
	pathText                   // texts:
	hostText                   // a name or an address
	argText                    // a command line
	nameText                   // of a user, a thread, a service …
	serveText                  // a service: a port, or a name
	modeText                   // fopen's mode
)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// Numbers by the names that rows give them. One that is in no list does not stay; a test says which those are.
var (
	plainNumbers = words(`n flags mode off fd id sig pid out uid gid number priority what which who how cmd clk ns us ms timeout timeout_ns
		status options option set old mask doing kind type domain protocol level name backlog len max op events size run ran readers epoch
		writer generation count ceiling prio policy soft hard real effective saved eid sid pgid tid group inc cpu node index whence advice prot
		newn page wd to first last read_fd write_fd write_end peer conn target other herr atime mtime left_ns outoff value_ns interval_ns
		value_us interval_us interval seconds delta_us old_us modes base clock signo notify messages place num dir nochdir noclose master initval
		is_sig sigormask flag af bound key request at time dev pieces
		project error class version persona`)
	memoryNumbers = words(`addr mutex handle handler a b arg argument data`)
	valueNumbers  = words(`value`)
	drawnNumbers  = words(`seed bits`)
	portNumbers   = words(`port`)
)

func numberOf(row *trace.Row, name string) treatment {
	switch {
	case row.Class == cabi.Random && (valueNumbers[name] || drawnNumbers[name]):
		return drawn
	case valueNumbers[name]:
		return value
	case portNumbers[name]:
		return port
	case memoryNumbers[name]:
		return memory
	case plainNumbers[name]:
		return plain
	}
	return gone
}

// resultOf is what a call's result is.
func resultOf(row *trace.Row) treatment {
	switch {
	case row.Class == cabi.Random && (row.Ret == trace.RetUint || row.Ret == trace.RetInt):
		return drawn
	case row.Name == "gethostid":
		return gone
	case row.Class == cabi.Memory || row.Name == "syscall":
		return memory
	}
	return plain
}

// textOf is what a text of a row is, by the field's name and the call's.
func textOf(row *trace.Row, f trace.FieldSpec) treatment {
	if f.Kind == trace.FieldPath {
		return pathText
	}
	switch f.Name {
	case "from", "text":
		return pathText
	case "line":
		return argText
	case "node", "canon", "host", "domain":
		return hostText
	case "service", "serv":
		return serveText
	case "user", "proto":
		return nameText
	case "mode":
		return modeText
	case "name":
		switch n := strings.TrimLeft(row.Name, "_"); {
		case strings.HasPrefix(n, "gethost"), strings.HasPrefix(n, "getdomain"), strings.HasPrefix(n, "res_"):
			return hostText
		case strings.HasPrefix(n, "ttyname"):
			return pathText
		}
		return nameText
	}
	return gone
}

func fieldOf(row *trace.Row, f trace.FieldSpec) treatment {
	switch f.Kind {
	case trace.FieldPath, trace.FieldStr:
		return textOf(row, f)
	}
	return numberOf(row, f.Name)
}

// rowRule is how the events of a row are treated.
type rowRule struct {
	ret   treatment
	f     [3]treatment
	tail  []treatment
	plain bool // nothing of it needs a look
}

func ruleOf(row *trace.Row) *rowRule {
	r := &rowRule{ret: resultOf(row)}
	r.plain = r.ret == plain && len(row.Tail) == 0
	for i, name := range row.F {
		if name == "" {
			r.f[i] = gone // it has none, so what is there is not what it seems
			r.plain = false
			continue
		}
		r.f[i] = numberOf(row, name)
		r.plain = r.plain && r.f[i] == plain
	}
	for _, f := range row.Tail {
		r.tail = append(r.tail, fieldOf(row, f))
	}
	return r
}

// number is what stands for a number.
func (t *tokens) number(how treatment, v int64) int64 {
	switch how {
	case plain:
		return v
	case memory:
		return int64(t.memory(uint64(v)))
	case value:
		if t.keep.all[Inputs] {
			return v
		}
		return int64(t.memory(uint64(v)))
	case drawn:
		if t.keep.all[Inputs] {
			return v
		}
		if v != 0 {
			t.counts[Inputs].Removed++
		}
		return 0
	case port:
		if v > 0 && v < 1<<16 {
			return int64(t.port(uint16(v)))
		}
		return v
	}
	return 0
}

// str is what stands for a text.
func (t *tokens) str(how treatment, s string) string {
	switch how {
	case pathText:
		return t.path(s)
	case hostText:
		return t.host(s)
	case argText:
		return t.text(Arguments, s)
	case nameText:
		return t.text(Names, s)
	case serveText:
		return t.service(s)
	case modeText:
		if len(s) <= 8 && strings.Trim(s, "rwax+bcem") == "" {
			return s
		}
	}
	return ""
}

package inside

import (
	"path/filepath"
	"strings"

	"prophet/runtime/trace"
)

// Again is what to start to run a trace's command again as it was started: its program, arguments, environment, directory,
// process id and limits. Prophet's own variables, and its library in LD_PRELOAD, are not among the environment. lost
// counts variables whose values the trace does not have.
func Again(t *trace.Trace) (s Spec, lost int) {
	m := t.Meta
	s = Spec{Path: m.Exe, Argv: m.Command, Dir: m.Cwd}
	if len(t.Procs) > 0 {
		s.PID = int(t.Procs[0].PID)
	}
	for _, e := range m.Env {
		name, value, ok := strings.Cut(e, "=")
		switch {
		case !ok:
			lost++
		case name == "PROPHET_TRACE" || name == "PROPHET_RUN" || name == "PROPHET_OPTIONS":
		case name == "LD_PRELOAD":
			if rest := WithoutLibrary(value); rest != "" {
				s.Env = append(s.Env, name+"="+rest)
			}
		default:
			s.Env = append(s.Env, e)
		}
	}
	if st := m.Start; st != nil {
		lost += st.EnvCut
		s.Limits = &Limits{Umask: st.Umask, Nice: st.Nice, Ignored: st.Ignored}
		for _, l := range st.Limits {
			s.Limits.Limits = append(s.Limits.Limits, [2]uint64{uint64(l[0]), uint64(l[1])})
		}
		s.Handed = st.Handed
	}
	return s, lost
}

// WithoutLibrary is LD_PRELOAD without Prophet's library.
func WithoutLibrary(preload string) string {
	var rest []string
	for _, p := range strings.FieldsFunc(preload, func(r rune) bool { return r == ':' || r == ' ' }) {
		if filepath.Base(p) != "libprophet.so" {
			rest = append(rest, p)
		}
	}
	return strings.Join(rest, ":")
}

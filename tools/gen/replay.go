package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"prophet/cabi"
)

// skipped are the numbers of events that name an address or a handle: they differ between two runs, and are not compared.
var skipped = []string{"addr", "handle", "handler", "routine"}

// masked are the calls whose stand-ins have the signals delivered that came inside, with the mask that they set.
var masked = []string{"sigprocmask", "pthread_sigmask", "sigrelse", "sigsetmask", "sigblock", "sigsuspend", "__sigsuspend", "sigpause", "__sigpause", "__xpg_sigpause"}

// makers make a thread or process, which may be there although the call never came back.
var makers = []string{"pthread_create", "thrd_create", "fork", "__fork", "_Fork", "clone", "__clone", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen", "_IO_popen", "syscall"}

// nesting says whether events of what a call calls come before its own.
func nesting(c cabi.Call) bool {
	if c.Class == cabi.Stdio || strings.Contains(c.Rec, "pre nested") {
		return true
	}
	return slices.Contains([]string{"fork", "__fork", "_Fork", "forkpty", "clone", "__clone", "pthread_once", "__pthread_once", "call_once", "system", "popen", "fclose", "pclose"}, c.Name)
}

// objects are the calls that make, or end, an object or its name at once.
var objects = []string{
	"shm_open", "sem_open", "sem_close", "sem_unlink", "semget", "semctl", "msgget",
	"pthread_mutex_init", "__pthread_mutex_init", "pthread_mutex_destroy", "__pthread_mutex_destroy", "mtx_init", "mtx_destroy",
	"pthread_rwlock_init", "__pthread_rwlock_init", "pthread_rwlock_destroy", "__pthread_rwlock_destroy",
	"pthread_cond_init", "cnd_init", "pthread_spin_init", "pthread_spin_destroy", "pthread_barrier_init", "sem_init", "sem_destroy",
}

// holds says whether a thread of a serial run keeps the token during the call: it waits for nobody, so what it
// writes to the program's memory overlaps with nothing of another thread.
// What is done to names and sizes of files keeps it too: it waits for the disk alone. So does what begins and ends an
// object, or a name of one, which processes may share: only a condition or a barrier waits for those who are still at it.
// And what the C library does with directories and modules: it takes memory, and others would get other addresses.
func holds(c cabi.Call) bool {
	if slices.Contains(objects, c.Name) || c.Name == "dlclose" {
		return true
	}
	if nesting(c) && c.Class == cabi.Disk && !strings.Contains(c.Name, "fopen") && !strings.Contains(c.Name, "freopen") {
		return true
	}
	if nesting(c) || strings.Contains(c.Rec, "; seq") || c.Block && c.Class != cabi.Disk {
		return false
	}
	if c.Block {
		named := strings.Contains("; "+c.Rec, "; path ") && !strings.Contains(c.Name, "open") && !strings.HasPrefix(c.Name, "creat")
		return named || strings.Contains(c.Name, "fallocate") || strings.HasPrefix(c.Name, "ftruncate")
	}
	return slices.Contains([]cabi.Class{cabi.Disk, cabi.Net, cabi.Time, cabi.Random, cabi.Shape, cabi.Memory}, c.Class)
}

// failsAtOnce says whether a call that failed in the recording is not made, without a word in its row: it changed nothing.
func failsAtOnce(c cabi.Call) bool {
	return c.Class == cabi.Disk && c.Reexec == "real" && !nesting(c) && !strings.Contains(c.Rec, "ret ") && !strings.Contains(c.Sig, "...") && !strings.Contains(c.Sig, "(*") && c.Name != "close" && c.Name != "__close"
}

// letting says whether others may go on because of a call, even when the process ended before it was written.
func letting(c cabi.Call) bool {
	if c.Class != cabi.Sync {
		return false
	}
	for _, s := range []string{"_unlock", "sem_post", "_signal", "_broadcast", "barrier_wait", "cond_wait", "cond_timedwait", "cond_clockwait", "cnd_wait", "cnd_timedwait", "guard_release", "guard_abort"} {
		if strings.HasSuffix(c.Name, s) {
			return true
		}
	}
	return false
}

// replay prints what a re-execution knows of each call: flags, and the stand-ins of rows that answer from the trace.
func replay() ([]byte, error) {
	var b, flags bytes.Buffer
	b.WriteString(banner + "/* Included by replay.c alone. */\n#include \"feed.h\"\n")
	for _, c := range intercepted() {
		var f []string
		for _, step := range strings.Split(c.Rec, ";") {
			w := strings.Fields(step)
			if len(w) < 2 || len(w[0]) != 2 || w[0][0] != 'f' {
				continue
			}
			name, _ := nameExpr(w[1])
			if slices.Contains(skipped, name) || strings.Contains(c.Skip, w[0]) {
				f = append(f, "RE_SKIP_"+strings.ToUpper(w[0]))
			}
		}
		if strings.Contains(c.Skip, "ret") {
			f = append(f, "RE_SKIP_RET")
		}
		if strings.Contains(c.Skip, "tail") {
			f = append(f, "RE_SKIP_TAIL")
		}
		if strings.Contains(c.Skip, "obj") {
			f = append(f, "RE_SKIP_OBJ")
		}
		if nesting(c) {
			f = append(f, "RE_NESTS")
		}
		if c.Class == cabi.Sync || c.Class == cabi.Stdio || strings.Contains(c.Rec, "; seq") {
			f = append(f, "RE_TURN")
		}
		if letting(c) {
			f = append(f, "RE_LETS")
		}
		if letting(c) && !strings.HasSuffix(c.Name, "barrier_wait") {
			f = append(f, "RE_FREES")
		}
		if holds(c) {
			f = append(f, "RE_HOLDS")
		}
		if c.Block && strings.Contains("; "+c.Rec, "; obj fd ") {
			f = append(f, "RE_FD")
		}
		if slices.Contains(makers, c.Name) {
			f = append(f, "RE_MAKES")
		}
		if slices.Contains(masked, c.Name) {
			f = append(f, "RE_MASKED")
		}
		if len(f) > 0 {
			fmt.Fprintf(&flags, "\t[CALL_%s] = %s,\n", ident(c), strings.Join(f, " | "))
		}
		if c.Feed == "" && !failsAtOnce(c) {
			continue
		}
		s, err := parseSig(c.Sig)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		ret := "errno"
		for _, step := range strings.Split(c.Rec, ";") {
			if w := strings.Fields(step); len(w) > 1 && w[0] == "ret" {
				ret = w[1]
			}
		}
		params := strings.Join(s.params, ", ")
		real := fmt.Sprintf("((%s (*)(%s))shim_true(CALL_%s))(%s)", s.ret, s.args, ident(c), params)
		fmt.Fprintf(&b, "\nstatic %s zfeed_%s(%s)\n{\n\tstruct expect *x = shim_re_of(CALL_%s);\n\tif (!x)\n", s.ret, ident(c), s.args, ident(c))
		if s.ret == "void" {
			fmt.Fprintf(&b, "\t\t%s;\n\telse {\n", real)
		} else {
			fmt.Fprintf(&b, "\t\treturn %s;\n", real)
		}
		for _, p := range s.params {
			fmt.Fprintf(&b, "\t(void)%s;\n", p)
		}
		returned := false
		switch c.Feed {
		case "":
			test := "x->ret >= 0"
			if ret == "err" {
				test = "x->ret == 0"
			}
			fmt.Fprintf(&b, "\tif (%s)\n\t\treturn %s;\n", test, real)
		case "ret":
		default:
			for _, l := range strings.Split(c.Feed, ";") {
				l = strings.TrimSpace(l)
				returned = strings.HasPrefix(l, "return ")
				switch l {
				case "", "}":
					fmt.Fprintf(&b, "\t%s\n", l)
				case "try":
					fmt.Fprintf(&b, "\tif (x->ret >= 0) {\n\t\tint was = errno;\n\t\t(void)%s;\n\t\terrno = was;\n\t}\n", real)
				default:
					fmt.Fprintf(&b, "\t%s;\n", strings.ReplaceAll(l, "REAL()", real))
				}
			}
		}
		switch {
		case returned:
		case s.ret == "void":
			b.WriteString("\t}\n")
		case ret == "errno":
			fmt.Fprintf(&b, "\treturn (%s)shim_re_ret(x);\n", s.ret)
		case ret == "err" || ret == "int" || ret == "uint":
			fmt.Fprintf(&b, "\treturn (%s)x->ret;\n", s.ret)
		default:
			return nil, fmt.Errorf("%s: Feed must return what the call returns", c.Name)
		}
		fmt.Fprintf(&b, "}\nPRINTED(%s, zfeed_%s)\n", ident(c), ident(c))
	}
	fmt.Fprintf(&b, "\nconst u16 shim_re_flags[CALLS_MAX] = {\n%s};\n", flags.String())
	return b.Bytes(), nil
}

package target

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A Spec says where a target is and what it may have.
type Spec struct {
	Text    string  // as the user wrote it
	Command string  // exec: by a shell
	User    string  // ssh
	Host    string  // ssh; "" and no Command: this machine
	Port    int     // ssh; 0: its default
	CPUs    int     // local; 0: all
	Quota   float64 // local: CPU time in CPUs; 0: all
	Dir     string  // under which it makes its directory; "": its directory for temporary files
}

// Forms are what Parse understands, for help texts.
const Forms = `local[,cpus=N][,quota=F][,dir=DIR]   this machine, with so many CPUs, F CPUs' time, on the disk of DIR
ssh://[user@]host[:port][/dir]       another one; nothing has to be installed there, no port is opened
exec:COMMAND                         whatever a command leads to: one that gives a shell, or that starts
                                     "replayd target"; {} in it stands for that, with this machine's replayd`

// Parse reads a target as people write it.
func Parse(s string) (Spec, error) {
	spec := Spec{Text: s}
	bad := func(format string, a ...any) (Spec, error) {
		return spec, fmt.Errorf("target %q: %s; targets are\n%s", s, fmt.Sprintf(format, a...), Forms)
	}
	if strings.ContainsRune(s, 0) || len(s) > ArgMax {
		return bad("it is too long, or has a zero byte")
	}
	switch {
	case strings.HasPrefix(s, "exec:"):
		if spec.Command = strings.TrimPrefix(s, "exec:"); strings.TrimSpace(spec.Command) == "" {
			return bad("exec: wants a command")
		}
		return spec, nil
	case strings.HasPrefix(s, "ssh://"):
		u, err := url.Parse(s)
		if err != nil {
			return bad("%v", err)
		}
		if spec.Host, spec.User, spec.Dir = u.Hostname(), u.User.Username(), u.Path; spec.Host == "" || strings.HasPrefix(spec.Host, "-") || strings.HasPrefix(spec.User, "-") {
			return bad("it names no host")
		}
		if _, secret := u.User.Password(); secret || u.RawQuery != "" || u.Fragment != "" {
			return bad("ssh:// takes a user, a host, a port and a directory")
		}
		if p := u.Port(); p != "" {
			if spec.Port, err = strconv.Atoi(p); err != nil || spec.Port < 1 || spec.Port > 65535 {
				return bad("its port is none")
			}
		}
		if spec.Dir == "/" {
			spec.Dir = ""
		}
		return spec, nil
	case s == "local" || strings.HasPrefix(s, "local,"):
		// A directory's name may have commas in it, so dir= comes last.
		rest := strings.TrimPrefix(strings.TrimPrefix(s, "local"), ",")
		for rest != "" {
			key, value, _ := strings.Cut(rest, "=")
			if key == "dir" {
				if spec.Dir = value; value == "" {
					return bad("dir= wants a directory")
				}
				return spec, nil
			}
			value, rest, _ = strings.Cut(value, ",")
			var err error
			switch key {
			case "cpus":
				if spec.CPUs, err = strconv.Atoi(value); err != nil || spec.CPUs < 1 || spec.CPUs > 1<<16 {
					return bad("cpus= wants a number of CPUs")
				}
			case "quota":
				if spec.Quota, err = strconv.ParseFloat(value, 64); err != nil || !(spec.Quota >= 0.01 && spec.Quota <= 1<<16) {
					return bad("quota= wants CPU time in CPUs, as 0.5")
				}
			default:
				return bad("local does not know %q", key)
			}
		}
		return spec, nil
	}
	return bad("it is of no known kind")
}

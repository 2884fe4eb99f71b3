package scrub

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Kind is a kind of what may be private.
type Kind uint8

// The kinds, in the order of the table that is shown.
const (
	Inputs Kind = iota
	Paths
	Hosts
	Addresses
	Arguments
	Names
	Marks
	Memory
	kinds
)

// kindInfo says what a kind is called, what belongs to it and what becomes of it.
var kindInfo = [kinds]struct{ name, one, what, how string }{
	Inputs:    {"inputs", "", "data read and written and its hashes, random numbers, contents of options and attributes, files as before the run", "left out"},
	Paths:     {"paths", "path", "of files, directories, modules, programs, sockets, queues and semaphores, texts of links", "a token for each component; depth and usual extensions stay"},
	Hosts:     {"hosts", "host", "names of machines, boot id, kernel build", "a token for each"},
	Addresses: {"addresses", "address", "network addresses and ports", "another address for each; loopback stays"},
	Arguments: {"arguments", "argument", "command lines, environment", "a token for each argument; the environment is left out"},
	Names:     {"names", "name", "of threads, users, groups, services, interfaces, attributes", "a token for each"},
	Marks:     {"marks", "mark", "labels that the program set", "a token for each"},
	Memory:    {"memory", "", "addresses in memory", "another address for each; call sites keep their place in their module"},
}

func (k Kind) String() string { return kindInfo[k].name }

// KindNames are the words for kinds, and for what a pattern may be given to.
func KindNames() (all, fine []string) {
	for _, k := range kindInfo {
		all = append(all, k.name)
		if k.one != "" {
			fine = append(fine, k.one)
		}
	}
	return all, append(fine, "env")
}

// Describe is what belongs to each kind and what becomes of it, by name.
func Describe() (rows [][3]string) {
	for _, k := range kindInfo {
		rows = append(rows, [3]string{k.name, k.what, k.how})
	}
	return rows
}

// Keep says what stays: whole kinds, and single things by pattern.
type Keep struct {
	all      [kinds]bool
	patterns [kinds][]string
	env      []string
	nets     []netip.Prefix
}

// ParseKeep reads a list like `names,path:/usr/*,address:10.0.0.0/8,env:LANG`. In a pattern * stands for any text and ?
// for one character. A path is matched as it is without its dots.
func ParseKeep(list []string) (*Keep, error) {
	k := &Keep{}
	for _, item := range list {
		word, pattern, fine := strings.Cut(item, ":")
		i := slices.IndexFunc(kindInfo[:], func(c struct{ name, one, what, how string }) bool {
			return fine && c.one == word && word != "" || !fine && c.name == word
		})
		switch {
		case fine && pattern == "":
			return nil, fmt.Errorf("--keep %s: the pattern is empty", item)
		case fine && word == "env":
			k.env = append(k.env, pattern)
		case i < 0:
			all, one := KindNames()
			return nil, fmt.Errorf("--keep %s: keep is one of %s, or %s with a pattern", item, strings.Join(all, ", "), strings.Join(one, ":, ")+":")
		case !fine:
			k.all[i] = true
		case Kind(i) == Addresses:
			p, err := parsePrefix(pattern)
			if err != nil {
				return nil, fmt.Errorf("--keep %s: %w", item, err)
			}
			k.nets = append(k.nets, p)
		default:
			k.patterns[i] = append(k.patterns[i], pattern)
		}
	}
	return k, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// text reports whether a text of a kind stays.
func (k *Keep) text(kind Kind, s string) bool {
	if k.all[kind] {
		return true
	}
	if len(k.patterns[kind]) == 0 {
		return false
	}
	if kind == Paths {
		if s == "" || strings.HasPrefix(path.Clean(s), "..") {
			return false
		}
		s = path.Clean(s)
	}
	for _, p := range k.patterns[kind] {
		if match(p, s) {
			return true
		}
	}
	return false
}

func (k *Keep) address(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return k.all[Addresses] || slices.ContainsFunc(k.nets, func(p netip.Prefix) bool { return p.Contains(a) })
}

// environ reports whether a variable stays, by its name.
func (k *Keep) environ(name string) bool {
	return k.all[Arguments] || slices.ContainsFunc(k.env, func(p string) bool { return match(p, name) })
}

// removed are the kinds of which not all stays.
func (k *Keep) removed() (names []string) {
	for i := range kinds {
		if !k.all[i] {
			names = append(names, kindInfo[i].name)
		}
	}
	return names
}

// match matches without recursion, in time bounded by the product of both lengths.
func match(pattern, s string) bool {
	p, i, star, from := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

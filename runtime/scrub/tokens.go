package scrub

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"prophet/cabi"
	"prophet/runtime/trace"
)

// tokens makes what stands for private things: the same for the same thing, within one scrubbed trace. Tokens are
// keyed hashes by a key that is random for each scrub and kept nowhere, so that nobody can try guesses. Not safe for
// concurrent use.
type tokens struct {
	keep   *Keep
	mac    hash.Hash
	texts  map[string]string // a cache
	hosts  map[netip.Addr]netip.Addr
	ports  map[uint16]uint16
	pages  [1 << 12]struct{ page, to uint64 } // a cache
	spaces []space
	counts [kinds]Count
}

// Count is how often things of a kind were met.
type Count struct {
	Removed uint64 // or replaced
	Kept    uint64
	Bytes   uint64 // of data left out
}

func newTokens(k *Keep, spaces []space) *tokens {
	key := make([]byte, 32)
	rand.Read(key) // never fails, or ends the program
	return &tokens{keep: k, mac: hmac.New(sha256.New, key), texts: map[string]string{}, hosts: map[netip.Addr]netip.Addr{}, ports: map[uint16]uint16{}, spaces: spaces}
}

func (t *tokens) sum(domain byte, b []byte) []byte {
	t.mac.Reset()
	t.mac.Write([]byte{domain})
	t.mac.Write(b)
	return t.mac.Sum(nil)
}

var code = base32.NewEncoding("abcdefghijkmnpqrstuvwxyz23456789").WithPadding(base32.NoPadding)

// tokenLen is long enough that a million different things have different tokens.
const tokenLen = 10

// maxTexts bounds the cache.
const maxTexts = 1 << 16

// token stands for s.
func (t *tokens) token(kind Kind, s string) string {
	id := string(rune('0'+kind)) + s
	if v, ok := t.texts[id]; ok {
		return v
	}
	v := code.EncodeToString(t.sum(byte(kind), []byte(s)))[:tokenLen]
	if len(t.texts) >= maxTexts {
		clear(t.texts)
	}
	t.texts[id] = v
	return v
}

// count counts one thing of a kind.
func (t *tokens) count(kind Kind, kept bool) {
	if kept {
		t.counts[kind].Kept++
	} else {
		t.counts[kind].Removed++
	}
}

// text is what stands for a whole text.
func (t *tokens) text(kind Kind, s string) string {
	if s == "" {
		return ""
	}
	kept := t.keep.text(kind, s)
	t.count(kind, kept)
	if kept {
		return s
	}
	return t.token(kind, s)
}

// pathMax bounds what stands for a path: what lies deeper becomes one token. A record's texts are bounded, and tokens can
// be longer than what they stand for.
const pathMax = 1000

// usual are the extensions that stay.
var usual = map[string]bool{}

func init() {
	for _, e := range strings.Fields("so a o c h cc cpp hpp go rs py pyc js ts java jar class rb pl pm sh lua php txt md log conf cfg ini json yaml yml xml html htm css csv tsv sql db sqlite sqlite3 wal shm journal lock pid sock tmp bak swp cache dat bin idx gz xz bz2 zst zip tar tgz deb rpm png jpg jpeg gif svg pdf mp3 mp4 wav mo po ttf pem crt key cnf service socket") {
		usual[e] = true
	}
}

// ending is a name's end that may stay: an extension, and of what a number may follow, that too (libssl.so.1.1, app.log.1).
var ending = regexp.MustCompile(`^.+?\.(?:so(?:\.[0-9]{1,2}){0,3}|([a-z0-9]+)(?:\.[0-9])?)$`)

// extension is the end of a name that stays with it.
func extension(name string) string {
	m := ending.FindStringSubmatchIndex(name)
	if m == nil {
		return ""
	}
	if m[2] < 0 {
		return name[strings.LastIndex(name, ".so"):]
	}
	if !usual[name[m[2]:m[3]]] {
		return ""
	}
	return name[m[2]-1:]
}

// path is what stands for a path: a token for each component, so that what lies in one directory still does, and a
// relative path still fits the absolute one.
func (t *tokens) path(s string) string {
	if strings.Trim(s, "/.") == "" {
		return s // nothing, the root, dots
	}
	kept := t.keep.text(Paths, s)
	t.count(Paths, kept)
	if kept {
		return s
	}
	const deleted = " (deleted)" // as the kernel says it of names that are gone
	s, gone := strings.CutSuffix(s, deleted)
	var b strings.Builder
	for s != "" {
		if b.Len() > pathMax {
			b.WriteString(t.token(Paths, s))
			break
		}
		part, rest, more := strings.Cut(s, "/")
		switch part {
		case "", ".", "..":
			b.WriteString(part)
		default:
			b.WriteString(t.token(Paths, part) + extension(part))
		}
		if s = rest; more {
			b.WriteByte('/')
		}
	}
	if gone {
		b.WriteString(deleted)
	}
	return b.String()
}

// host is what stands for the name of a machine; one that is an address is treated as that.
func (t *tokens) host(s string) string {
	if a, err := netip.ParseAddr(s); err == nil {
		return t.addr(a).String()
	}
	switch s {
	case "localhost", "(none)":
		return s
	}
	return t.text(Hosts, s)
}

// addr is what stands for a network address: 10.0.0.0/8 and 2001:db8::/32, counted up. What says where on the machine
// itself stays.
func (t *tokens) addr(a netip.Addr) netip.Addr {
	zone := a.Zone()
	mapped := a.Is4In6()
	if a = a.Unmap().WithZone(""); a.IsUnspecified() || a == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || a == netip.IPv6Loopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return remap(a, mapped)
	}
	kept := t.keep.address(a)
	t.count(Addresses, kept)
	if kept {
		return remap(a, mapped).WithZone(zone)
	}
	v, ok := t.hosts[a]
	if !ok {
		n := uint32(len(t.hosts) + 1)
		if n > 1<<20 { // no table without bound: from here on two may have one
			n = binary.LittleEndian.Uint32(t.sum('a', a.AsSlice()))&(1<<24-1) | 1<<20
		}
		if a.Is4() {
			v = netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
		} else {
			v = netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 12: byte(n >> 24), 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
		}
		if len(t.hosts) < 1<<20 {
			t.hosts[a] = v
		}
	}
	return remap(v, mapped)
}

func remap(a netip.Addr, mapped bool) netip.Addr {
	if mapped {
		return netip.AddrFrom16(a.As16())
	}
	return a
}

// port is what stands for a port: another one, none for none.
func (t *tokens) port(p uint16) uint16 {
	if p == 0 {
		return 0
	}
	if t.count(Addresses, t.keep.all[Addresses]); t.keep.all[Addresses] {
		return p
	}
	if v, ok := t.ports[p]; ok {
		return v
	}
	v := p
	for again := true; again; again = v == 0 {
		v = uint16(t.shuffle('p', 8, uint64(v)))
	}
	t.ports[p] = v
	return v
}

// shuffle is a permutation of the numbers of 2*half bits, by the key.
func (t *tokens) shuffle(domain byte, half uint, v uint64) uint64 {
	mask := uint64(1)<<half - 1
	l, r := v>>half&mask, v&mask
	for round := range byte(4) {
		h := t.sum(domain, binary.LittleEndian.AppendUint64([]byte{round}, r))
		l, r = r, l^binary.LittleEndian.Uint64(h)&mask
	}
	return l<<half | r
}

// space is a part of memory that stays in one piece: modules of the run's processes that overlap.
type space struct{ low, end, to uint64 }

// Where in memory what stands for addresses lies: modules where programs have theirs, all else where no program can.
const (
	spacesAt = 1 << 40
	pageBits = 12
	pagesAt  = 1 << 48
	othersAt = 1 << 49
	smallest = 1 << 16 // numbers below are no addresses

	maxSpaces = 1 << 20 // of modules; those beyond lose their place
)

// layout gives the modules' ranges their new places.
func layout(list []space) []space {
	slices.SortFunc(list, func(a, b space) int {
		if a.low < b.low {
			return -1
		}
		return 1
	})
	var out []space
	for _, s := range list {
		if n := len(out); n > 0 && s.low < out[n-1].end {
			out[n-1].end = max(out[n-1].end, s.end)
			continue
		}
		out = append(out, s)
	}
	at := uint64(spacesAt)
	for i := range out {
		size := out[i].end - out[i].low
		if size > 1<<40 || at > 1<<46 {
			return out[:i] // no program's: what lies there is taken page by page
		}
		out[i].to = at + out[i].low&(1<<pageBits-1)
		at += (size + 1<<21) &^ (1<<21 - 1)
		at += 1 << 21
	}
	return out
}

func (t *tokens) space(v uint64) *space {
	i, found := slices.BinarySearchFunc(t.spaces, v, func(s space, v uint64) int {
		switch {
		case s.end <= v:
			return -1
		case s.low > v:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &t.spaces[i]
}

// memory is what stands for an address in memory. Equal ones stay equal, those of one page keep their distance.
func (t *tokens) memory(v uint64) uint64 {
	if t.keep.all[Memory] || v < smallest || int64(v) < 0 && int64(v) > -smallest {
		return v
	}
	t.counts[Memory].Removed++
	if s := t.space(v); s != nil {
		return s.to + (v - s.low)
	}
	page := v >> pageBits
	c := &t.pages[(page^page>>12^page>>24)%uint64(len(t.pages))]
	if c.page != page {
		c.page = page
		if page < 1<<36 {
			c.to = pagesAt | t.shuffle('m', 18, page)<<pageBits
		} else {
			c.to = othersAt | binary.LittleEndian.Uint64(t.sum('o', binary.LittleEndian.AppendUint64(nil, page)))&(1<<36-1)<<pageBits
		}
	}
	return c.to | v&(1<<pageBits-1)
}

// module is what stands for a module's place and bias.
func (t *tokens) module(low, bias uint64) (uint64, uint64) {
	if to := t.memory(low); to != low {
		return to, to - (low - bias)
	}
	return low, bias
}

// collect finds where the modules of a trace's processes lie.
func collect(tr *trace.Trace, workers int) ([]space, error) {
	var mu sync.Mutex
	seen := map[space]bool{}
	_, err := tr.WalkOnly(cabi.SetOf(cabi.Mark), workers, func(*trace.Thread) trace.Visit {
		return func(r *trace.Record) error {
			if r.Tag != cabi.TagModule || r.Nums[0] < smallest || r.Nums[0]+r.Nums[1] <= r.Nums[0] {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if len(seen) < maxSpaces {
				seen[space{low: r.Nums[0], end: r.Nums[0] + r.Nums[1]}] = true
			}
			return nil
		}
	})
	return layout(slices.Collect(maps.Keys(seen))), err
}

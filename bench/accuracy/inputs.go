package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

// makers make the inputs that programs work on, the same ones each time.
var makers = map[string]func(path string) error{
	"text":  func(p string) error { return os.WriteFile(p, words(20<<20), 0o644) },
	"small": func(p string) error { return os.WriteFile(p, words(2<<20), 0o644) },
	"lines": func(p string) error { return os.WriteFile(p, numbers(800000), 0o644) },
	"data":  func(p string) error { return os.WriteFile(p, words(8<<20), 0o644) },
	"wav":   sound,
	"video": pictures,
	"png":   picture(640, 480),
	"large": picture(1600, 1200),
	"py":    func(p string) error { return os.WriteFile(p, []byte(script), 0o644) },
	"db": func(p string) error {
		out, err := exec.Command("sqlite3", p, "create table t(a integer primary key, b blob)").CombinedOutput()
		if err != nil {
			return fmt.Errorf("sqlite3: %w: %s", err, out)
		}
		return nil
	},
	"ops1": transactions(1), "ops2": transactions(2), "ops4": transactions(4), "ops8": transactions(8),
}

const transactionsAll = 48

// transactions are those of one of so many clients. Each works for some milliseconds, with the database locked: starting
// the clients is not to be most of the run.
func transactions(clients int) func(string) error {
	const one = "insert into t(b) select randomblob(300+length(replace(hex(zeroblob(400000)),'00','1'))%2);\n"
	return func(p string) error {
		return os.WriteFile(p, bytes.Repeat([]byte(one), transactionsAll/clients), 0o644)
	}
}

// Parts of a text are compressed by programs of their own, two at a time, while python counts.
const script = `import collections, subprocess
data = open("small", "rb").read()
parts = [data[i:i + len(data) // 8] for i in range(0, len(data), len(data) // 8)]
size, count = 0, collections.Counter()
for a, b in zip(parts[::2], parts[1::2]):
    both = [subprocess.Popen(["gzip", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in (a, b)]
    count.update(a.split())
    size += sum(len(p.communicate(part)[0]) for p, part in zip(both, (a, b)))
print(size, len(count))
`

func words(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var dict [4000][]byte
	for i := range dict {
		w := make([]byte, 2+r.IntN(9))
		for j := range w {
			w[j] = byte('a' + r.IntN(26))
		}
		dict[i] = w
	}
	var b bytes.Buffer
	for b.Len() < size {
		n := int(math.Abs(r.NormFloat64()) * 700)
		b.Write(dict[min(n, len(dict)-1)])
		b.WriteByte(" \n"[min(r.IntN(12), 11)/11])
	}
	return b.Bytes()[:size]
}

func numbers(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	var b bytes.Buffer
	for range n {
		fmt.Fprintf(&b, "%x\n", r.Uint64())
	}
	return b.Bytes()
}

// sound is a few tones and some hiss.
func sound(path string) error {
	const rate, seconds = 44100, 30
	r := rand.New(rand.NewPCG(5, 6))
	pcm := make([]int16, rate*seconds*2)
	for i := range rate * seconds {
		t := float64(i) / rate
		v := 6000*math.Sin(2*math.Pi*(220+40*math.Sin(t))*t) + 3000*math.Sin(2*math.Pi*1330*t) + 800*r.NormFloat64()
		pcm[2*i], pcm[2*i+1] = int16(v), int16(v*0.7+200*r.NormFloat64())
	}
	var b bytes.Buffer
	size := uint32(len(pcm) * 2)
	for _, v := range []any{[]byte("RIFF"), 36 + size, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(2), uint32(rate), uint32(rate * 4), uint16(4), uint16(16), []byte("data"), size, pcm} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// pictures move, as a video without compression.
func pictures(path string) error {
	const w, h, frames = 352, 288, 36
	r := rand.New(rand.NewPCG(7, 8))
	var b bytes.Buffer
	fmt.Fprintf(&b, "YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n", w, h)
	for f := range frames {
		b.WriteString("FRAME\n")
		for y := range h {
			for x := range w {
				b.WriteByte(byte(128 + 80*math.Sin(float64(x+3*f)/17)*math.Cos(float64(y-2*f)/23) + 6*r.NormFloat64()))
			}
		}
		for range 2 {
			for y := range h / 2 {
				for x := range w / 2 {
					b.WriteByte(byte(128 + 40*math.Sin(float64(x+y+f)/31)))
				}
			}
		}
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

func picture(w, h int) func(string) error {
	return func(path string) error {
		r := rand.New(rand.NewPCG(9, 10))
		m := image.NewRGBA(image.Rect(0, 0, w, h))
		for y := range h {
			for x := range w {
				v := func(k float64) uint8 {
					return uint8(128 + 100*math.Sin(float64(x)/k)*math.Cos(float64(y)/(k+5)) + 5*r.NormFloat64())
				}
				m.SetRGBA(x, y, color.RGBA{v(40), v(60), v(25), 255})
			}
		}
		var b bytes.Buffer
		if err := png.Encode(&b, m); err != nil {
			return err
		}
		return os.WriteFile(path, b.Bytes(), 0o644)
	}
}

// settled writes a file that is on the disk when the program begins, as those are that an issue prepares: else the program's first sync
// would write its inputs, too.
func settled(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}

// fill gives a directory what a program works on.
func (m *measurer) fill(w *workload, dir string) error {
	for _, name := range w.inputs {
		from := filepath.Join(m.work, "inputs", name)
		if _, err := os.Stat(from); err != nil {
			if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
				return err
			}
			if err := makers[name](from); err != nil {
				return fmt.Errorf("making %s: %w", name, err)
			}
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := settled(filepath.Join(dir, name), b); err != nil {
			return err
		}
	}
	if w.source != "" {
		return os.Symlink(m.built[w.source], filepath.Join(dir, "program"))
	}
	return nil
}

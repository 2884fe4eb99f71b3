package main

import (
	"fmt"
	"strings"
)

// workload is a program of the plan: what it is, what it needs, and where it is predicted and run.
type workload struct {
	name    string
	source  string // of a C program, below the repository; compiled as "program"
	needs   []string
	inputs  []string // of inputs.go, put into its directory before each run
	argv    []string
	targets []string
	strict  bool // how many rounds the thesis's way takes is measured beside ours
	threads bool // other orders are possible: the strawman and think times are measured beside it
	tail    int  // turns at home, for quantiles
	short   bool // part of the short version
	minds   bool // its threads compute with much memory: prophet sense learns first how much they mind sharing a core
}

// Targets, as the plan names them.
const (
	home  = "home"
	cpus1 = "cpus1"
	half  = "half"
	disk1 = "fsync1ms"
	disk5 = "fsync5ms"
	disk9 = "fsync20ms"
	link  = "link50mbit"
)

// debian is the package that brings a command that is not called as its package.
var debian = map[string]string{"oggenc": "vorbis-tools", "cwebp": "webp", "xz": "xz-utils", "ip": "iproute2", "tc": "iproute2", "sort": "coreutils", "gcc": "gcc"}

var plan = programs()

func programs() []*workload {
	var list []*workload
	add := func(w *workload) { list = append(list, w) }
	shell := func(script string) []string { return []string{"sh", "-c", script} }
	cores := []string{home, cpus1, half}
	for _, n := range []int{1, 2, 4, 8} {
		// As many transactions in all, so that more clients mean more contention and not more work.
		script := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do sqlite3 -cmd '.timeout 60000' db <ops%d >/dev/null & i=$((i+1)); done; wait`, n, n)
		targets := []string{home, cpus1, disk1, disk5}
		if n == 4 {
			targets = []string{home, cpus1, half, disk1, disk5, disk9}
		}
		add(&workload{name: fmt.Sprintf("sqlite3-%d", n), needs: []string{"sqlite3"}, inputs: []string{"db", fmt.Sprintf("ops%d", n)}, argv: shell(script), targets: targets,
			threads: n > 1, strict: n == 8, tail: 50, short: n == 2})
	}
	add(&workload{name: "pigz-p2", needs: []string{"pigz"}, inputs: []string{"text"}, argv: []string{"pigz", "-p2", "-k", "-c", "text"}, targets: cores, threads: true, minds: true})
	add(&workload{name: "xz-T2", needs: []string{"xz"}, inputs: []string{"small"}, argv: []string{"xz", "-T2", "-3", "--block-size=512KiB", "-k", "-c", "small"}, targets: cores, threads: true, minds: true})
	add(&workload{name: "pipeline", source: "tests/predict/pipeline.c", argv: []string{"./program", "8", "1500"}, targets: cores, threads: true, strict: true, short: true})
	for _, n := range []int{2, 4, 8, 16} {
		// As much work in all, whatever the number of threads.
		rounds := fmt.Sprint(6400 / n)
		targets := []string{home, cpus1}
		if n == 8 {
			targets = cores
		}
		add(&workload{name: fmt.Sprintf("lockstep-%d", n), source: "tests/predict/barrier.c", argv: []string{"./program", fmt.Sprint(n), rounds}, targets: targets, threads: true, strict: true})
		add(&workload{name: fmt.Sprintf("barrier-%d", n), source: "tests/predict/pbarrier.c", argv: []string{"./program", fmt.Sprint(n), rounds}, targets: targets, threads: true, strict: true})
	}
	single := func(name, needs, input, line string) {
		add(&workload{name: name, needs: strings.Fields(needs), inputs: strings.Fields(input), argv: strings.Fields(line), targets: []string{home, half}})
	}
	single("flac", "flac", "wav", "flac -s -8 -e -f -o out wav")
	single("lame", "lame", "wav", "lame --quiet wav out")
	single("oggenc", "oggenc", "wav", "oggenc -Q -o out wav")
	single("x264", "x264", "video", "x264 --quiet --threads 1 --demuxer y4m -o out.264 video")
	single("cwebp", "cwebp", "large", "cwebp -quiet -m 6 large -o out")
	single("pngcrush", "pngcrush", "png", "pngcrush -q png out.png")
	single("gzip", "gzip", "text", "gzip -k -c text")
	single("bzip2", "bzip2", "data", "bzip2 -k -c data")
	single("openssl", "openssl", "small", "openssl enc -aes-256-cbc -pbkdf2 -iter 800000 -pass pass:x -in small -out out")
	add(&workload{name: "pbzip2", needs: []string{"pbzip2"}, inputs: []string{"data"}, argv: []string{"pbzip2", "-p2", "-b5", "-k", "-c", "data"}, targets: cores, threads: true, minds: true})
	add(&workload{name: "sort", needs: []string{"sort"}, inputs: []string{"lines"}, argv: []string{"sort", "--parallel=2", "-S", "32M", "-o", "out", "lines"}, targets: cores, threads: true, minds: true})
	add(&workload{name: "contend", source: "bench/progs/contend.c", argv: []string{"./program", "4", "6000"}, targets: cores, threads: true})
	disks := []string{home, disk1, disk5, disk9}
	add(&workload{name: "disk-random", source: "bench/progs/disk.c", inputs: []string{"data"}, argv: []string{"./program", "random", "3000"}, targets: disks})
	add(&workload{name: "disk-order", source: "bench/progs/disk.c", inputs: []string{"data"}, argv: []string{"./program", "order", "1024"}, targets: disks, short: true})
	add(&workload{name: "python3", needs: []string{"python3", "gzip"}, inputs: []string{"py", "small"}, argv: []string{"python3", "py"}, targets: cores, threads: true})
	add(&workload{name: "client", source: "bench/progs/link.c", argv: []string{"./program", "150"}, targets: []string{home, cpus1, link}, threads: true})
	return list
}

// shortTargets are those of the short version.
var shortTargets = map[string]bool{home: true, cpus1: true, disk5: true}

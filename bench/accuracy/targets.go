package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"prophet/runtime/target"
)

// place is a target that was made on this machine.
type place struct {
	spec target.Spec
	real []string // how the real program is started there: before our own name
	args []string // and what we are told behind it
	dir  string   // where its directory is made
	down func() error
}

var syncs = map[string]time.Duration{disk1: time.Millisecond, disk5: 5 * time.Millisecond, disk9: 20 * time.Millisecond}

// linkRate is what the slow link carries, as tc writes it.
const linkRate = "50mbit"

// how says how each target is made, for people; and by which command where it cannot be made.
var how = [][2]string{
	{home, "this machine"},
	{cpus1, "one of its CPUs, by affinity"},
	{half, "half of one CPU's time, by a control group"},
	{disk1, "a disk whose syncs take 1 ms: a filesystem in user space over memory, reads and writes passed through"},
	{disk5, "the same, 5 ms"},
	{disk9, "the same, 20 ms"},
	{link, "a network namespace whose link carries " + linkRate + " (`tc qdisc add dev lo root tbf`). Where the kernel has netem, `tc qdisc add dev lo root netem delay 1ms` would add a delay"},
}

// at makes a target. What could not be made is an error that says why.
func (m *measurer) at(ctx context.Context, name string) (*place, error) {
	p := &place{dir: m.work, down: func() error { return nil }}
	spec := "local"
	switch name {
	case home:
	case cpus1:
		spec, p.args = "local,cpus=1", []string{"--cpus", "1"}
	case half:
		spec, p.args = "local,quota=0.5", []string{"--quota", "0.5"}
	case disk1, disk5, disk9:
		p.dir = filepath.Join(m.work, name)
		d, err := mountSlow(p.dir, syncs[name])
		if err != nil {
			return nil, err
		}
		spec, p.down = "local,dir="+p.dir, d.unmount
	case link:
		space := fmt.Sprintf("prophet-accuracy-%d", os.Getpid())
		p.down = func() error { return command(context.Background(), "ip", "netns", "delete", space) }
		for _, line := range []string{
			"ip netns add " + space,
			"ip -n " + space + " link set lo up",
			"tc -n " + space + " qdisc add dev lo root tbf rate " + linkRate + " burst 128kb latency 2s",
		} {
			if err := command(ctx, strings.Fields(line)...); err != nil {
				p.down()
				return nil, err
			}
		}
		p.real = []string{"ip", "netns", "exec", space}
		spec = "exec:ip netns exec " + space + " {}"
	default:
		return nil, fmt.Errorf("no target is called %q", name)
	}
	var err error
	p.spec, err = target.Parse(spec)
	return p, err
}

// command runs a command, whose words are the error when it fails.
func command(ctx context.Context, argv ...string) error {
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("`%s`: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

package main

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
)

// Servers: the server runs bare or recorded, its load generator always bare. What counts is the server's CPU time for
// the same work, from its start to its end.

func redisRun(b *bench, way, dir string) (float64, string, error) {
	socket := filepath.Join(dir, "s")
	p := b.command(way, dir, "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--daemonize", "no")
	if err := p.cmd.Start(); err != nil {
		return 0, "", err
	}
	err := until("redis-server", func() bool { return dials("unix", socket) })
	if err == nil {
		_, err = b.output(dir, "redis-benchmark", "-s", socket, "-q", "-c", "50", "-n", strconv.Itoa(b.scale(100_000)), "-t", "set,get,incr,lpush")
	}
	cpu, stopped := p.stop(syscall.SIGTERM)
	if err == nil {
		err = stopped
	}
	return cpu, p.trace, err
}

const nginxConf = `
daemon off;
worker_processes 1;
pid %[1]s/pid;
error_log stderr warn;
events { worker_connections 512; }
http {
	access_log %[1]s/access.log;
	client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
	sendfile on;
	keepalive_requests 1000000;
	server { listen 127.0.0.1:%[2]d; root %[1]s; }
}
`

func nginxSetup(_ *bench, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "page"), make([]byte, 4000), 0o644); err != nil {
		return err
	}
	return os.Chmod(dir, 0o777)
}

var wrkRequests = regexp.MustCompile(`(\d+) requests in`)

func nginxRun(b *bench, way, dir string) (float64, string, error) {
	port, err := freePort()
	if err != nil {
		return 0, "", err
	}
	conf := filepath.Join(dir, "conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, port), 0o644); err != nil {
		return 0, "", err
	}
	os.Remove(filepath.Join(dir, "access.log"))
	at := fmt.Sprintf("127.0.0.1:%d", port)
	p := b.command(way, dir, "nginx", "-e", "stderr", "-c", conf)
	if err := p.cmd.Start(); err != nil {
		return 0, "", err
	}
	requests, err := b.wrk(dir, at)
	cpu, stopped := p.stop(syscall.SIGQUIT)
	if err == nil {
		err = stopped
	}
	return cpu / requests, p.trace, err
}

// wrk loads a web server as much as it bears, and returns how many requests that were.
func (b *bench) wrk(dir, at string) (requests float64, err error) {
	if err := until("nginx", func() bool { return dials("tcp", at) }); err != nil {
		return 0, err
	}
	seconds := "2s"
	if b.quick {
		seconds = "1s"
	}
	out, err := b.output(dir, "wrk", "-t1", "-c32", "-d"+seconds, "http://"+at+"/page")
	if err != nil {
		return 0, err
	}
	if m := wrkRequests.FindStringSubmatch(out); m != nil {
		requests, _ = strconv.ParseFloat(m[1], 64)
	}
	if requests == 0 {
		return 0, fmt.Errorf("wrk said %s", lastLines(out, 10))
	}
	return requests, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func dials(network, at string) bool {
	c, err := net.Dial(network, at)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// postgresUser is whom the database runs as: it refuses root.
func postgresUser() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func postgresBin(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return name
	}
	return found[len(found)-1]
}

func (b *bench) postgres(way, dir string) (p *proc, ask func(argv ...string) (string, error), err error) {
	p = b.command(way, dir, postgresBin("postgres"), "-D", dir+"/data", "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "autovacuum=off", "-c", "log_min_messages=fatal")
	p.cmd.SysProcAttr = postgresUser()
	if err := p.cmd.Start(); err != nil {
		return nil, nil, err
	}
	ask = func(argv ...string) (string, error) {
		return b.output(dir, append([]string{argv[0], "-h", dir, "-U", "bench"}, argv[1:]...)...)
	}
	err = until("postgres", func() bool { _, err := ask(postgresBin("pg_isready")); return err == nil })
	return p, ask, err
}

func postgresSetup(b *bench, dir string) error {
	who := postgresUser()
	if who != nil {
		if err := os.Chown(dir, int(who.Credential.Uid), int(who.Credential.Gid)); err != nil {
			return err
		}
	}
	p := b.command(wayBare, dir, postgresBin("initdb"), "-D", dir+"/data", "-A", "trust", "-U", "bench", "--no-sync")
	p.cmd.SysProcAttr = who
	if _, err := p.run(); err != nil {
		return err
	}
	p, ask, err := b.postgres(wayBare, dir)
	if err == nil {
		_, err = ask(postgresBin("pgbench"), "-i", "-q", "-s", "4", "postgres")
	}
	if p != nil {
		if _, stopped := p.stop(syscall.SIGINT); err == nil {
			err = stopped
		}
	}
	return err
}

func postgresRun(b *bench, way, dir string) (float64, string, error) {
	p, ask, err := b.postgres(way, dir)
	if p == nil {
		return 0, "", err
	}
	if err == nil {
		_, err = ask(postgresBin("pgbench"), "-n", "-c", "4", "-t", strconv.Itoa(b.scale(1500)), "postgres")
	}
	cpu, stopped := p.stop(syscall.SIGINT)
	if err == nil {
		err = stopped
	}
	return cpu, p.trace, err
}

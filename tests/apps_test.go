package tests

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// app is a program that Debian ships, doing something whose output is the same in every run. The script is for bash, in
// a directory of its own; PORT is a free port, HERE is that directory.
type app struct {
	name   string
	needs  string // programs
	script string
	user   bool    // refuses to run as root
	least  float64 // of the read and write bytes that the kernel counted, this share is explained; 0: 0.97
}

const compress = `
seq 1 200000 > numbers
xz -T2 --block-size=300KiB -k numbers; xz -dc -T2 numbers.xz | cmp - numbers && echo xz $(stat -c %s numbers.xz)
pigz -p 3 -k numbers; pigz -dc numbers.gz | cmp - numbers && echo pigz
pbzip2 -p2 -k -b2 numbers; pbzip2 -dc numbers.bz2 | cmp - numbers && echo pbzip2 $(stat -c %s numbers.bz2)
`

var apps = []app{
	{name: "sqlite3", needs: "sqlite3", script: `
sqlite3 t.db "create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n where i<20000) insert into t select i, hex(i*7919) from n; create index x on t(b); select count(*), sum(length(b)) from t;"
sqlite3 t.db "pragma journal_mode=wal; begin; update t set b='x'||b where a%3=0; commit; select count(*) from t where b like 'x%'; pragma integrity_check;"
sqlite3 t.db .dump | md5sum
for i in 1 2 3 4; do sqlite3 -cmd '.timeout 20000' t.db "update t set b=b||$i where a=$i" & done; wait
sqlite3 t.db "select b from t where a<6"
`},
	{name: "redis", needs: "redis-server redis-cli redis-benchmark", script: `
redis-server --port $PORT --save '' --appendonly yes --daemonize no --io-threads 2 > log 2>&1 &
for i in $(seq 200); do redis-cli -p $PORT ping 2>/dev/null | grep -q PONG && break; sleep 0.05; done
redis-benchmark -p $PORT -n 5000 -c 20 -P 4 -t set,get,incr,lpush,lrange_100 -q 2>&1 | tr '\r' '\n' | grep -c 'requests per second.*, p50'
redis-cli -p $PORT set k v; redis-cli -p $PORT get k; redis-cli -p $PORT incrby n 41; redis-cli -p $PORT eval 'local s=0 for i=1,1000 do s=s+i end return s' 0
redis-cli -p $PORT bgrewriteaof > /dev/null; sleep 0.3
redis-cli -p $PORT bgsave > /dev/null; sleep 0.3
redis-cli -p $PORT dbsize; redis-cli -p $PORT llen mylist
redis-cli -p $PORT shutdown nosave; wait; echo ended $?
`},
	{name: "nginx", needs: "nginx wrk curl", script: `
mkdir -p html tmp; seq 1 100000 > html/numbers; echo '<h1>home</h1>' > html/index.html
cat > conf <<C
daemon on; master_process on; worker_processes 2; pid $HERE/pid; error_log $HERE/errors; user root;
events { worker_connections 256; }
http { access_log $HERE/access; sendfile on; gzip on; gzip_types *; client_body_temp_path $HERE/tmp; proxy_temp_path $HERE/tmp; fastcgi_temp_path $HERE/tmp; uwsgi_temp_path $HERE/tmp; scgi_temp_path $HERE/tmp;
 server { listen 127.0.0.1:$PORT; root $HERE/html; location /back { proxy_pass http://127.0.0.1:$PORT/; } } }
C
nginx -c $HERE/conf -p $HERE
for i in $(seq 100); do curl -so /dev/null http://127.0.0.1:$PORT/ && break; sleep 0.05; done
curl -s http://127.0.0.1:$PORT/numbers | md5sum; curl -s --compressed http://127.0.0.1:$PORT/numbers | md5sum; curl -s http://127.0.0.1:$PORT/back
curl -s -r 100-199 http://127.0.0.1:$PORT/numbers; curl -s -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$PORT/none
wrk -t2 -c20 -d1s http://127.0.0.1:$PORT/ | grep -cE 'Non-2xx|Socket errors'
nginx -c $HERE/conf -p $HERE -s reload 2>/dev/null; sleep 0.3; curl -s http://127.0.0.1:$PORT/
nginx -c $HERE/conf -p $HERE -s quit 2>/dev/null; for i in $(seq 100); do [ -e pid ] || break; sleep 0.05; done; [ -e pid ] || echo ended; cat errors | grep -c emerg
`},
	{name: "compress", needs: "xz pigz pbzip2", script: compress},
	{name: "python threads", needs: "python3", script: `
cat > t.py <<'P'
import threading, queue, concurrent.futures, hashlib, time, multiprocessing, os, random
q = queue.Queue(); out = []
def work():
    while True:
        n = q.get()
        if n is None: return
        out.append(hashlib.sha256(str(n).encode()).hexdigest())
ts = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in ts]
[q.put(i) for i in range(2000)]; [q.put(None) for _ in ts]; [t.join() for t in ts]
print(hashlib.sha256(''.join(sorted(out)).encode()).hexdigest())
with concurrent.futures.ThreadPoolExecutor(4) as e: print(sum(e.map(lambda x: x*x, range(1000))))
c = threading.Condition(); ok = []
def waiter():
    with c:
        c.wait_for(lambda: ok, timeout=10); ok.append(1)
w = [threading.Thread(target=waiter) for _ in range(5)]; [t.start() for t in w]
time.sleep(0.05)
with c: ok.append(0); c.notify_all()
[t.join() for t in w]; print(len(ok))
s = threading.Semaphore(2); print(s.acquire(timeout=0.1), s.acquire(timeout=0.1), s.acquire(timeout=0.1))
def f(x): return x ** 3
if __name__ == '__main__':
    p = multiprocessing.Pool(3); print(sum(p.map(f, range(500)))); p.close(); p.join()
    p = multiprocessing.get_context('spawn').Pool(1); print(p.map(f, [3])); p.close(); p.join()
P
python3 t.py; echo $?
`},
	{name: "python subprocess", needs: "python3", script: `
python3 - <<'P'
import subprocess, os, sys, signal, tempfile, shutil
print(subprocess.run(['sh', '-c', 'cat; exit 3'], input=b'hello', capture_output=True))
print(subprocess.check_output('seq 1000 | tail -1', shell=True, text=True))
p = [subprocess.Popen(['sleep', '10']) for _ in range(3)]; [x.terminate() for x in p]; print([x.wait() for x in p])
try: subprocess.run(['sleep', '10'], timeout=0.1)
except subprocess.TimeoutExpired: print('timeout')
try: subprocess.run(['/nonexistent'])
except FileNotFoundError as e: print(e)
r = os.fork()
if r == 0: os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(r, 0)[1]))
print(subprocess.run([sys.executable, '-c', 'import sys; sys.exit(5)'], close_fds=True, env={}).returncode)
print(subprocess.run(['echo', 'x'], preexec_fn=os.setsid, capture_output=True).stdout, os.posix_spawn('/bin/true', ['true'], {}) > 0, os.wait()[1])
d = tempfile.mkdtemp(dir='.')
for i in range(50): open(f'{d}/{i}', 'w').write(str(i) * 100)
print(sorted(os.listdir(d))[:3], sum(os.path.getsize(f'{d}/{f}') for f in os.listdir(d))); shutil.rmtree(d)
signal.signal(signal.SIGALRM, lambda *a: print('alarm')); signal.setitimer(signal.ITIMER_REAL, 0.05); signal.pause()
P
echo $?
`},
	{name: "python asyncio", needs: "python3", script: `
python3 - <<'P'
import asyncio
async def serve(r, w):
    while (l := await r.readline()): w.write(l.upper()); await w.drain()
    w.close()
async def client(port, n):
    r, w = await asyncio.open_connection('127.0.0.1', port); got = []
    for i in range(20):
        w.write(f'c{n} m{i}\n'.encode()); got.append((await r.readline()).decode().strip())
    w.close(); await w.wait_closed(); return got[-1]
async def main():
    s = await asyncio.start_server(serve, '127.0.0.1', 0); port = s.sockets[0].getsockname()[1]
    print(await asyncio.gather(*(client(port, i) for i in range(20))))
    p = await asyncio.create_subprocess_exec('sh', '-c', 'read x; echo got $x; exit 4', stdin=-1, stdout=-1)
    print(await p.communicate(b'line\n'), p.returncode)
    try: await asyncio.wait_for(asyncio.sleep(5), 0.05)
    except asyncio.TimeoutError: print('timeout')
    print(await asyncio.to_thread(lambda: 7))
    s.close(); await s.wait_closed()
asyncio.run(main())
P
echo $?
`},
	{name: "coreutils", needs: "tar bc find", script: `
mkdir -p a/b/c; seq 1 5000 > a/n; shuf --random-source=a/n a/n > a/b/s; ln -s n a/l; ln a/n a/h; printf 'x%.0s' {1..1000} > a/b/c/x; cp -a a z; diff -r a z && echo same
sort -n --parallel=4 -S 64K a/b/s | cmp - a/n; sort -R --random-source=a/n a/n | md5sum; tac a/n | head -3; wc a/n; cut -c1-2 a/n | uniq -c | sort -k1nr -k2n | head -3
tar czf t.tgz --sort=name --mtime=@0 --owner=0 --group=0 a; tar xzf t.tgz -C z; find z -type f | sort | xargs -n1 -P1 md5sum | md5sum; du -s --apparent-size a | cut -f1
dd if=a/n of=d bs=100 count=3 skip=1 2>/dev/null; od -c d | tail -2; split -n 3 a/n p; cat p* | cmp - a/n; paste a/n a/b/s | md5sum; comm -12 <(sort a/n) <(sort a/b/s) | wc -l
truncate -s 100K big; stat -c '%s %b' big; cp --sparse=always big b2; mv b2 b3; rm -rf z; ls; echo $(echo '2^200' | bc); timeout 0.1 sleep 5; echo $?; tee x1 x2 < d | md5sum; install -m 600 d i; stat -c %a i; touch -d @0 i; date -u -r i +%s; env -i sh -c 'echo ${LD_PRELOAD:-none}' | sed 's/^.*libprophet.so$/none/'; nice -n 5 nice; factor 1234567890; base64 d | md5sum; chmod 000 i; ls -l i | cut -c1-10; mkfifo f; cat f & echo fifo > f; wait
`},
	{name: "bash", needs: "bash dash", script: `
f() { local i; for i in 1 2 3; do echo $1$i; done; }; f a | while read x; do echo "<$x>"; done; x=$(f b | tail -1); echo $x
for i in $(seq 20); do echo $i; done | grep 1 | sed 's/1/one/' | awk '{print NR, $0}' | tail -2
(exit 3) | (exit 4) | true; echo ${PIPESTATUS[@]}; trap 'echo usr1' USR1; kill -USR1 $$; sleep 0.3 & wait $!; echo waited $?; { sleep 5 & } ; kill %1; wait %1 2>/dev/null; echo $?
coproc cat; echo co >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y; kill $COPROC_PID; exec 7<<<"here"; read -u 7 z; echo $z; exec 7<&-
cat <(echo one) <(echo two); diff <(seq 3) <(seq 4); echo $?; ulimit -n; (ulimit -n 50; bash -c 'ulimit -n; cat /dev/null; echo ok'); exec 3>&1 4>&2; echo to3 >&3; set -o pipefail; false | true; echo $?; yes | head -2; echo $?; (bash -c 'kill -9 $$'; echo $?) 2>/dev/null; dash -c 'trap "echo bye" EXIT; exit 6'; echo $?; unset LD_PRELOAD; echo unset
`},
	{name: "git", needs: "git", script: `
export HOME=$HERE GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z' GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_PAGER=cat
git init -q -b main r; cd r; for i in $(seq 200); do echo $i > f$i; done; git add .; git commit -qm one; git checkout -qb side; for i in $(seq 50); do echo side >> f$i; done; git commit -qam two; git checkout -q main; echo main > g; git add g; git commit -qm three
git merge -q -m merged side; git log --oneline --graph; git gc -q; git fsck; git diff HEAD~1 --stat | tail -1; git rev-parse HEAD; cd ..; git clone -q r c; cd c; git log --format=%H | md5sum; git grep -c side | wc -l; git stash -q 2>&1; git blame f3; git status -s; git archive HEAD | md5sum
`},
	{name: "gcc", needs: "gcc g++ make", script: `
cat > a.c <<C
#include <stdio.h>
int b(int); int main(void) { printf("%d\n", b(20)); return 0; }
C
echo 'int b(int x) { return x * 2 + 2; }' > b.c
printf 'all: p\n%%.o: %%.c\n\tgcc -O2 -c -o $@ $<\np: a.o b.o\n\tgcc -o $@ $^\n' > Makefile
make -s -j2; ./p; echo '#include <vector>
int main() { std::vector<int> v(10, 4); int s = 0; for (int x : v) s += x; return s; }' > c.cc; g++ -pipe -O2 -flto -o c c.cc; ./c; echo $?; echo 'int x = ;' > e.c; gcc -c e.c; echo $?; md5sum a.o b.o; gcc -E a.c | tail -1
`},
	{name: "perl", needs: "perl", script: `
perl -e 'use threads; use threads::shared; my $n :shared = 0; my @t = map { threads->create(sub { for (1..200) { lock($n); $n++ } return $_[0] * 2 }, $_) } 1..6; print join(",", map { $_->join } @t), " $n\n"; my $o = qx(echo sub; exit 2); print $o, $? >> 8, "\n"; open(my $p, "-|", "seq 3") or die; print while <$p>; close $p; my $pid = fork; if (!$pid) { exec "sh", "-c", "exit 7" } waitpid $pid, 0; print $? >> 8, "\n"; local $SIG{ALRM} = sub { die "alarm\n" }; eval { alarm 1; select(undef, undef, undef, 3); }; print $@; pipe(R, W); print W "x\n"; close W; print <R>; die "end\n"'; echo $?
`},
	{name: "memcached", needs: "memcached python3", user: true, script: `
: # what follows cd's && is a shell of its own, and that would be killed
memcached -p $PORT -l 127.0.0.1 -U 0 -t 4 & pid=$!
python3 - <<'P'
import socket, threading, os, time
port = int(os.environ['PORT'])
for i in range(100):
    try: socket.create_connection(('127.0.0.1', port)).close(); break
    except OSError: time.sleep(0.05)
bad = []
def client(n):
    s = socket.create_connection(('127.0.0.1', port)); f = s.makefile('rwb')
    for i in range(200):
        v = b'v%d-%d' % (n, i) * 20
        f.write(b'set k%d-%d 0 0 %d\r\n%s\r\n' % (n, i, len(v), v)); f.flush()
        if f.readline() != b'STORED\r\n': bad.append(i)
        f.write(b'get k%d-%d\r\n' % (n, i)); f.flush(); f.readline()
        if f.readline() != v + b'\r\n': bad.append(i)
        f.readline()
ts = [threading.Thread(target=client, args=(n,)) for n in range(8)]; [t.start() for t in ts]; [t.join() for t in ts]; print(bad)
P
kill $pid; wait $pid; echo $?
`},
	{name: "node", needs: "node", script: `
cat > t.js <<'J'
const { Worker, isMainThread, parentPort } = require('worker_threads'), fs = require('fs'), http = require('http'), cp = require('child_process'), zlib = require('zlib');
if (!isMainThread) { parentPort.postMessage(6 * 7); } else (async () => {
  console.log(await new Promise(r => new Worker(__filename).on('message', r)));
  fs.writeFileSync('x', 'y'.repeat(100000)); console.log((await fs.promises.readFile('x')).length, zlib.gunzipSync(zlib.gzipSync('abc')).toString());
  const s = http.createServer((q, a) => a.end('got ' + q.url)).listen(0, '127.0.0.1'); await new Promise(r => s.on('listening', r));
  const got = await Promise.all([...Array(20).keys()].map(i => new Promise(r => http.get({ port: s.address().port, path: '/' + i, host: '127.0.0.1', agent: false }, a => { let d = ''; a.on('data', c => d += c); a.on('end', () => r(d)); })))); console.log(got.join()); s.close();
  console.log(cp.execSync('echo child; exit 0').toString(), cp.spawnSync('sh', ['-c', 'exit 5']).status);
  await new Promise(r => setTimeout(r, 20)); process.exit(3);
})();
J
node t.js; echo $?
`},
	{name: "java", needs: "java", script: `
cat > T.java <<'J'
import java.util.concurrent.*; import java.util.stream.*; import java.nio.file.*;
public class T { static int n; public static void main(String[] a) throws Exception {
 ExecutorService e = Executors.newFixedThreadPool(8); var fs = IntStream.range(0, 200).mapToObj(i -> e.submit(() -> { synchronized (T.class) { n++; } return i * i; })).collect(Collectors.toList());
 long s = 0; for (var f : fs) s += f.get(); e.shutdown(); System.out.println(s + " " + n); Files.writeString(Path.of("f"), "text".repeat(1000)); System.out.println(Files.readString(Path.of("f")).length());
 System.out.println(IntStream.range(0, 100000).parallel().filter(i -> i % 7 == 0).count()); Process p = new ProcessBuilder("sh", "-c", "echo child; exit 4").inheritIO().start(); System.out.println(p.waitFor()); try { Object o = null; o.hashCode(); } catch (NullPointerException x) { System.out.println("null"); } System.exit(9); } }
J
java -Xshare:auto -Xmx256m T.java; echo $?
`},
	{name: "apache php", needs: "apache2 curl", script: `
mkdir -p html; echo '<?php echo "php ", strtoupper($_GET["q"]), " ", array_sum(range(1,100)); file_put_contents("/dev/null","x"); ?>' > html/t.php; seq 50000 > html/numbers
cat > conf <<C
ServerRoot $HERE
ServerName localhost
Listen 127.0.0.1:$PORT
PidFile $HERE/pid
ErrorLog $HERE/errors
LoadModule mpm_prefork_module /usr/lib/apache2/modules/mod_mpm_prefork.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule php_module /usr/lib/apache2/modules/libphp8.2.so
TypesConfig /etc/mime.types
User www-data
Group www-data
StartServers 3
DocumentRoot $HERE/html
<FilesMatch "\.php$">
SetHandler application/x-httpd-php
</FilesMatch>
C
chmod 755 $HERE html; apache2 -f $HERE/conf -k start; for i in $(seq 100); do curl -so /dev/null http://127.0.0.1:$PORT/numbers && break; sleep 0.05; done
for i in $(seq 20); do curl -s "http://127.0.0.1:$PORT/t.php?q=a$i"; echo; done; curl -s http://127.0.0.1:$PORT/numbers | md5sum
apache2 -f $HERE/conf -k graceful; sleep 0.3; curl -s "http://127.0.0.1:$PORT/t.php?q=again"; echo; apache2 -f $HERE/conf -k stop; for i in $(seq 100); do [ -e pid ] || break; sleep 0.05; done; [ -e pid ] || echo ended
`},
	{name: "postgres", needs: "/usr/lib/postgresql/15/bin/postgres pgbench", user: true, script: `
export PATH=/usr/lib/postgresql/15/bin:$PATH LC_ALL=C PGHOST=$HERE PGPORT=$PORT PGUSER=p PGDATABASE=postgres; exec 2>&1
initdb -D data -U p --no-sync > /dev/null && pg_ctl -D data -w -l log -o "-p $PORT -k $HERE -h ''" start > /dev/null
pgbench -i -q -s 1 > /dev/null 2>&1; pgbench -n -c 4 -j 2 -t 50 | grep -E 'processed|failed'
psql -Atc "select count(*) from pgbench_accounts; select sum(i) from generate_series(1,1000) i; create table t as select i, md5(i::text) m from generate_series(1,5000) i; select md5(string_agg(m, '' order by i)) from t; select count(*) from pgbench_history"
pg_dump -t t | grep -v '^--' | grep -v restrict | md5sum; pg_ctl -D data -w -m fast stop > /dev/null; echo $?; grep -cE 'PANIC|FATAL' log
`},
	{name: "mariadb", needs: "mariadbd mariadb sysbench mariadb-install-db", user: true, script: `
mariadb-install-db --no-defaults --datadir=$HERE/data --auth-root-authentication-method=normal --skip-test-db > /dev/null 2>&1
mariadbd --no-defaults --datadir=$HERE/data --socket=$HERE/s --skip-networking --innodb-buffer-pool-size=32M --innodb-flush-log-at-trx-commit=0 > log 2>&1 & pid=$!
for i in $(seq 200); do mariadb-admin --no-defaults -u root -S $HERE/s ping > /dev/null 2>&1 && break; sleep 0.1; done
m="mariadb --no-defaults -u root -S $HERE/s -N"; $m -e 'create database sbtest; use sbtest; create table t(a int primary key, b text); insert into t select seq, md5(seq) from seq_1_to_5000; select count(*), md5(group_concat(b order by a)) from t where a < 20; '
sysbench oltp_read_write --mysql-socket=$HERE/s --mysql-user=root --tables=1 --table-size=500 prepare > /dev/null; sysbench oltp_read_write --mysql-socket=$HERE/s --mysql-user=root --tables=1 --table-size=500 --threads=3 --events=60 --time=0 run | grep -E 'transactions:' | cut -d'(' -f1
mariadb-admin --no-defaults -u root -S $HERE/s shutdown; wait $pid; echo $?; grep -cE 'got signal|Assertion' log
`},
	{name: "x264", needs: "x264", script: `
head -c 1520640 /dev/zero | tr '\0' 'a' > in.yuv; x264 --quiet --threads 3 --no-progress --input-res 352x288 --fps 25 --demuxer raw -o out.264 in.yuv 2>/dev/null; echo $?; md5sum < out.264
`},
	{name: "openmpi", needs: "mpicc mpirun", script: `
cat > m.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) { int r, n, s; MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Comm_size(MPI_COMM_WORLD, &n); int x = r + 1; for (int i = 0; i < 100; i++) { MPI_Allreduce(&x, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); MPI_Barrier(MPI_COMM_WORLD); } if (!r) printf("%d of %d\n", s, n); MPI_Finalize(); return 0; }
C
OMPI_CC=gcc mpicc -o m m.c && mpirun --allow-run-as-root --oversubscribe --mca btl self,vader -np 3 ./m; echo $?
`, least: 0.9},
	{name: "gdb", needs: "gdb gcc", script: `
printf 'int f(int x) { return x + 1; }\nint main(void) { return f(4); }\n' > p.c; gcc -g -O0 -o p p.c
gdb -nx -q -batch -iex 'set auto-load no' -ex 'set startup-with-shell off' -ex 'break f' -ex run -ex 'print x' -ex finish -ex continue ./p 2>&1 | grep -vE 'process|libthread|Thread|warning'; echo $?
`},
	{name: "strace", needs: "strace", script: `
strace -f -o /dev/null sh -c 'echo traced | cat; exit 3'; echo $?
`},
}

const (
	loaderBytes = 12 << 10 // of headers, of libraries that a program is linked with
	killedBytes = 4 << 10  // of ours, in processes that are killed: the kernel counts them with their parent's
)

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// Programs that Debian ships do the same bare and recorded; their traces are whole, and explain what the kernel counted.
func TestApps(t *testing.T) {
	needRoot(t, "some programs are run as another user")
	if len(apps) < 20 {
		t.Fatalf("only %d programs", len(apps))
	}
	for _, a := range apps {
		t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			need(t, strings.Fields(a.needs)...)
			dir := publicDir(t)
			argv := []string{"bash", "-c", "cd $HERE && " + a.script}
			if a.user {
				need(t, "setpriv")
				argv = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, argv...)
			}
			var runs [2]Run
			begin := time.Now()
			for i := range runs {
				here := fmt.Sprintf("%s/run", dir) // the same name both times: some outputs tell it
				os.RemoveAll(here)
				if err := os.Mkdir(here, 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(here, 0o777); err != nil {
					t.Fatal(err)
				}
				c := Cmd{Argv: argv, Env: []string{"HERE=" + here, "PORT=" + freePort(t), "LC_ALL=C"}, Timeout: 2 * time.Minute}
				if i == 0 {
					runs[0] = c.Bare(t)
					continue
				}
				trace := dir + "/run.prophet"
				lib := dir + "/libprophet.so"
				copyFile(t, built(t, "libprophet.so"), lib, 0o755)
				env := []string{"LD_PRELOAD=" + lib, "PROPHET_TRACE=" + trace, "PROPHET_OPTIONS="}
				if a.user { // recorded from where the user is another one on
					c.Argv = append(append(append([]string{}, argv[:4]...), append([]string{"env"}, env...)...), argv[4:]...)
					env = nil
				}
				runs[1] = c.run(t, env)
				runs[1].Trace = trace
			}
			t.Logf("both runs took %v", time.Since(begin).Round(time.Millisecond))
			compare(t, "exit status", runs[0].Status, runs[1].Status)
			compare(t, "standard output", runs[0].Stdout, runs[1].Stdout)
			compare(t, "standard error", runs[0].Stderr, runs[1].Stderr)
			if strings.TrimSpace(runs[0].Stdout) == "" {
				t.Errorf("the program printed nothing, so nothing was compared: %s", clip(runs[0].Stderr))
			}
			f := sound(t, runs[1].Trace)
			c := f.Cover
			t.Logf("%d events, %d processes, %d threads; read %d of %d, write %d of %d explained", f.Events, f.Processes, f.Threads, c.ReadSeen, c.ReadBytes, c.WriteSeen, c.WriteBytes)
			least := a.least
			if least == 0 {
				least = 0.97
			}
			// The kernel counts what is read before a program's first instruction too: headers of its libraries.
			if known := uint64(f.Processes) * loaderBytes; float64(c.ReadSeen+known) < least*float64(c.ReadBytes) {
				t.Errorf("%d of %d bytes read are explained", c.ReadSeen, c.ReadBytes)
			}
			if float64(c.WriteSeen) < least*(float64(c.WriteBytes)-float64(f.Processes)*killedBytes) {
				t.Errorf("%d of %d bytes written are explained", c.WriteSeen, c.WriteBytes)
			}
			if out, err := exec.Command(built(t, "prophet"), "info", runs[1].Trace).CombinedOutput(); err != nil {
				t.Errorf("prophet info: %v\n%s", err, clip(string(out)))
			}
		})
	}
}

// TestCoverKept: what the recorder itself reads, to keep a file as it was before the run, is not the program's.
func TestCoverKept(t *testing.T) {
	r := Cmd{Argv: []string{"dd", "if=/dev/zero", "of=big", "bs=4096", "count=1", "conv=notrunc"}, Setup: func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "big"), make([]byte, 8<<20), 0o644)
	}}.Recorded(t)
	if c := sound(t, r.Trace).Cover; c.ReadBytes > 1<<20 || c.WriteBytes > 1<<20 {
		t.Errorf("%d bytes read and %d written are told of a program that copied 4096", c.ReadBytes, c.WriteBytes)
	}
}

// TestCoverLoading: nor is what the kernel and the dynamic linker read to load programs.
func TestCoverLoading(t *testing.T) {
	for _, script := range []string{"exec cat text", "cat text | sort >/dev/null; head -c 3000 text", "exec bash -c 'exec grep -c a text'"} {
		r := Cmd{Argv: []string{"sh", "-c", script}, Setup: func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "text"), bytes.Repeat([]byte("a line\n"), 1000), 0o644)
		}}.Recorded(t)
		if c := sound(t, r.Trace).Cover; c.ReadSeen < 7000 || c.ReadBytes > c.ReadSeen+c.ReadSeen/4 {
			t.Errorf("%s: of %d bytes read %d are explained", script, c.ReadBytes, c.ReadSeen)
		}
	}
}

// cflags: -Wno-implicit-function-declaration
/* The machine's shape, limits, and who we are: what is told must be what the kernel tells. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

extern long __sysconf(int);
extern int __getpagesize(void), __gethostname_chk(char *, size_t, size_t), __getdomainname_chk(char *, size_t, size_t);
extern int __sched_getparam(pid_t, struct sched_param *), __sched_getscheduler(pid_t), __sched_setscheduler(pid_t, int, const struct sched_param *);
extern int __sched_get_priority_max(int), __sched_get_priority_min(int), __getgroups_chk(int, gid_t *, size_t);
extern int __getlogin_r_chk(char *, size_t, size_t), __ttyname_r_chk(int, char *, size_t, size_t);
extern pid_t __getpid(void);

static void show(const char *what, long r)
{
	int e = errno;
	printf("%s %ld %d\n", what, r, r < 0 ? e : 0);
}

int main(void)
{
	char b[300], c[300], big[4096];
	struct sysinfo si;
	struct utsname u;
	double l[3];
	unsigned cpu = 0, node = 0;
	cpu_set_t set, set2;
	struct sched_param sp = {0};
	struct timespec ts;
	struct rlimit lim, lim2;
	struct rlimit64 lim64;
	uid_t ru, eu, su;
	gid_t groups[200];
	struct passwd pw, *pp;
	struct group gr, *gg;
	int n, fd = open("/dev/null", O_RDONLY);
	errno = 0;
	printf("page %ld %ld %d %d\n", sysconf(_SC_PAGESIZE), __sysconf(_SC_PAGESIZE), getpagesize(), __getpagesize());
	printf("cpus %d %d %d\n", sysconf(_SC_NPROCESSORS_ONLN) == get_nprocs(), sysconf(_SC_NPROCESSORS_CONF) == get_nprocs_conf(), get_nprocs() > 0);
	printf("pages %d %d\n", get_phys_pages() == sysconf(_SC_PHYS_PAGES), get_avphys_pages() > 0);
	errno = 0;
	printf("no limit %ld %d\n", sysconf(_SC_STREAM_MAX) > 0 ? -1 : 0, errno);
	show("sysconf bad", sysconf(99999));
	printf("pathconf %ld", pathconf("/", _PC_NAME_MAX));
	printf(" %ld", pathconf("/no/such", _PC_NAME_MAX));
	printf(" %d", errno);
	printf(" %ld\n", fpathconf(fd, _PC_PIPE_BUF));
	show("fpathconf bad", fpathconf(-1, _PC_NAME_MAX));
	printf("confstr %zu\n", confstr(_CS_PATH, b, sizeof b));
	show("sysinfo", sysinfo(&si));
	show("sysinfo nowhere", sysinfo((void *)8));
	show("getloadavg", getloadavg(l, 3));
	show("uname", uname(&u));
	printf("%s %s\n", u.sysname, u.machine);
	show("uname nowhere", uname((void *)8));
	show("gethostname", gethostname(b, sizeof b));
	printf("%d\n", strcmp(b, u.nodename));
	show("gethostname short", gethostname(b, 1));
	show("__gethostname_chk", __gethostname_chk(b, sizeof b, sizeof b));
	show("getdomainname", getdomainname(b, sizeof b));
	show("__getdomainname_chk", __getdomainname_chk(b, sizeof b, sizeof b));
	printf("hostid %d\n", gethostid() == gethostid());
	printf("descriptors %d\n", getdtablesize() == sysconf(_SC_OPEN_MAX));
	printf("cpu %d", sched_getcpu() >= 0);
	printf(" %d", getcpu(&cpu, &node));
	printf(" %d\n", getcpu(0, 0));
	CPU_ZERO(&set);
	show("getaffinity", sched_getaffinity(0, sizeof set, &set));
	printf("%d\n", CPU_COUNT(&set) == get_nprocs());
	show("getaffinity short", sched_getaffinity(0, 1, &set));
	show("setaffinity", sched_setaffinity(0, sizeof set, &set));
	show("setaffinity nowhere", sched_setaffinity(0, sizeof set, (void *)8));
	show("pthread_getaffinity", pthread_getaffinity_np(pthread_self(), sizeof set2, &set2));
	printf("%d\n", CPU_EQUAL(&set, &set2));
	show("pthread_setaffinity", pthread_setaffinity_np(pthread_self(), sizeof set2, &set2));
	show("getparam", sched_getparam(0, &sp));
	show("__getparam", __sched_getparam(0, &sp));
	printf("%d\n", sp.sched_priority);
	show("setparam", sched_setparam(0, &sp));
	show("scheduler", sched_getscheduler(0));
	show("__scheduler", __sched_getscheduler(0));
	show("setscheduler", sched_setscheduler(0, SCHED_OTHER, &sp));
	show("__setscheduler", __sched_setscheduler(0, SCHED_OTHER, &sp));
	show("setscheduler bad", sched_setscheduler(0, 77, &sp));
	show("interval", sched_rr_get_interval(0, &ts));
	printf("%d %d %d %d\n", sched_get_priority_max(SCHED_FIFO), sched_get_priority_min(SCHED_FIFO), __sched_get_priority_max(SCHED_RR),
	       __sched_get_priority_min(SCHED_RR));
	errno = 0;
	printf("priority %d", getpriority(PRIO_PROCESS, 0));
	printf(" %d\n", errno);
	show("setpriority", setpriority(PRIO_PROCESS, 0, 1));
	show("nice", nice(1));
	show("getpriority", getpriority(PRIO_PROCESS, 0));
	show("getrlimit", getrlimit(RLIMIT_NOFILE, &lim));
	show("getrlimit64", getrlimit64(RLIMIT_NOFILE, &lim64));
	printf("%d\n", lim.rlim_cur == lim64.rlim_cur);
	show("setrlimit", setrlimit(RLIMIT_NOFILE, &lim));
	show("setrlimit64", setrlimit64(RLIMIT_NOFILE, &lim64));
	show("prlimit", prlimit(0, RLIMIT_NOFILE, 0, &lim2));
	show("prlimit64", prlimit64(0, RLIMIT_NOFILE, &lim64, (void *)&lim2));
	show("prlimit nothing", prlimit(0, RLIMIT_NOFILE, 0, 0));
	printf("%d\n", !memcmp(&lim, &lim2, sizeof lim));
	show("getrlimit bad", getrlimit(77, &lim));
	show("getrlimit nowhere", getrlimit(RLIMIT_NOFILE, (void *)8));
	printf("pid %d %d %d %d\n", getpid() == syscall(SYS_getpid), __getpid() == getpid(), gettid() == getpid(), getppid() == syscall(SYS_getppid));
	printf("groups %d %d %d\n", getpgrp() == getpgid(0), __getpgid(0) == getpgrp(), getsid(0) > 0);
	show("getpgid bad", getpgid(-5));
	printf("ids %d %d\n", getuid() == geteuid(), getgid() == getegid());
	show("getresuid", getresuid(&ru, &eu, &su));
	printf("%d\n", ru == getuid());
	show("getresgid", getresgid(&ru, &eu, &su));
	show("getresuid nowhere", getresuid((void *)8, &eu, &su));
	n = getgroups(0, 0);
	printf("getgroups %d %d\n", n >= 0, getgroups(200, groups) == n);
	printf("__getgroups_chk %d\n", __getgroups_chk(200, groups, sizeof groups) == n);
	printf("login %d %d\n", getlogin() != 0 || errno, getlogin_r(b, sizeof b) == 0 || errno);
	printf("__getlogin_r_chk %d\n", __getlogin_r_chk(b, sizeof b, sizeof b) == 0 || errno);
	errno = 0;
	printf("tty %d", isatty(fd));
	printf(" %d", errno);
	printf(" %d", isatty(-1));
	printf(" %d", errno);
	printf(" %d", ttyname(fd) == 0);
	printf(" %d", ttyname_r(fd, b, sizeof b));
	printf(" %d\n", __ttyname_r_chk(fd, b, sizeof b, sizeof b));
	fd = open("/dev/ptmx", O_RDWR | O_NOCTTY);
	if (fd >= 0) {
		grantpt(fd);
		unlockpt(fd);
		n = open(ptsname(fd), O_RDWR | O_NOCTTY);
		if (n >= 0 && (!isatty(n) || !ttyname(n) || ttyname_r(n, c, sizeof c)))
			puts("a terminal without a name");
	}
	pp = getpwnam("root");
	printf("root %d", pp ? (int)pp->pw_uid : -1);
	pp = getpwuid(0);
	printf(" %s", pp ? pp->pw_name : "none");
	printf(" %d", getpwnam_r("root", &pw, big, sizeof big, &pp));
	printf(" %d", getpwuid_r(0, &pw, big, 2, &pp));
	printf(" %d\n", getpwnam("no such user") == 0);
	gg = getgrnam("root");
	printf("group %d", gg ? (int)gg->gr_gid : -1);
	gg = getgrgid(0);
	printf(" %s", gg ? gg->gr_name : "none");
	printf(" %d", getgrnam_r("root", &gr, big, sizeof big, &gg));
	printf(" %d", getgrgid_r(123456, &gr, big, sizeof big, &gg));
	printf(" %d\n", gg == 0);
	n = 200;
	printf("list %d\n", getgrouplist("root", 0, groups, &n) > 0);
	return 0;
}

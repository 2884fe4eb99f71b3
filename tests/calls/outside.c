// cflags: -Wno-deprecated-declarations
/* What the C library finds out by itself, unseen: names that nobody has, ids of files, who is logged in. A re-execution has it from
 * the trace; TestOutsideChanged changes all of it first. What would be done to the machine is asked for so that it fails. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/klog.h>
#include <sys/personality.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>
#include <utmpx.h>

extern char *__mktemp(char *), *__getwd_chk(char *, size_t);
extern int capget(void *, void *), capset(void *, const void *), init_module(void *, unsigned long, const char *), delete_module(const char *, unsigned);

static int seen; /* with an argument: what differs between two runs is told as well */

static void is(const char *what, const char *name)
{
	printf("%s %s\n", what, !name ? "none" : seen ? name : *name ? "a name" : "empty");
}

static void fails(const char *what, long r)
{
	printf("%s %ld %s\n", what, r, r < 0 ? strerror(errno) : "");
}

static void user(const char *what, const struct utmp *u)
{
	printf("%s %s %d\n", what, u ? u->ut_user : "none", u ? u->ut_pid : 0);
}

int main(int argc, char **argv)
{
	char a[] = "aXXXXXX", b[] = "bXXXXXX", wrong[] = "no", room[L_tmpnam], path[PATH_MAX], *p;
	unsigned head[2] = {0x20080522, 0}, odd[2] = {1, 0}, caps[6] = {0};
	struct utmp u, *up, room2, id = {.ut_type = USER_PROCESS, .ut_line = "tty9"};
	struct utmpx x;
	FILE *f;
	int i, status;
	pid_t pid;
	seen = argc > 1;
	is("mktemp", mktemp(a));
	is("__mktemp", __mktemp(b));
	is("mktemp of nothing", mktemp(wrong));
	is("tmpnam", tmpnam(0));
	is("tmpnam", tmpnam(room));
	is("tmpnam_r", tmpnam_r(room));
	p = tempnam("/tmp", "some");
	is("tempnam", p);
	free(p);
	f = fopen("outside.key", "a");
	fclose(f);
	printf("ftok %d\n", seen ? ftok("outside.key", 200) : ftok("outside.key", 200) != -1);
	fails("ftok of nothing", ftok("outside.none", 1));
	is("getwd", getwd(path));
	is("__getwd_chk", __getwd_chk(path, sizeof path));
	fails("tcgetsid", tcgetsid(0) == -1 ? -1 : 0);
	printf("hostid %ld\n", seen ? gethostid() : 0);

	/* A table of our own. */
	utmpname("outside.utmp");
	if (!seen) {
		unlink("outside.utmp");
		fclose(fopen("outside.utmp", "w"));
		setutent();
		for (i = 0; i < 2; i++) {
			memset(&u, 0, sizeof u);
			u.ut_type = USER_PROCESS;
			u.ut_pid = 100 + i;
			sprintf(u.ut_user, "user%d", i);
			sprintf(u.ut_line, "tty%d", 8 + i);
			sprintf(u.ut_id, "%d", i);
			pututline(&u);
		}
	}
	setutent();
	while ((up = getutent()))
		user("getutent", up);
	setutent();
	user("getutline", getutline(&id));
	setutent();
	memcpy(id.ut_id, "1", 2);
	user("getutid", getutid(&id));
	setutent();
	while (getutent_r(&room2, &up) == 0)
		user("getutent_r", up);
	setutent();
	printf("getutline_r %d\n", getutline_r(&id, &room2, &up));
	user("getutline_r", up);
	setutent();
	printf("getutid_r %d\n", getutid_r(&id, &room2, &up));
	user("getutid_r", up);
	setutxent();
	user("getutxent", (struct utmp *)getutxent());
	memcpy(&x, &id, sizeof x);
	setutxent();
	user("getutxline", (struct utmp *)getutxline(&x));
	setutxent();
	user("getutxid", (struct utmp *)getutxid(&x));
	endutent();

	/* What we may do. */
	fails("capget", capget(head, caps));
	printf("%x %x %x\n", caps[0], caps[1], caps[2]);
	fails("capget of the first version", capget((head[0] = 0x19980330, head), caps));
	fails("capget of none", capget(odd, 0));
	printf("%x\n", odd[0]);
	fails("capget nowhere", capget((void *)8, 0));
	fails("capset", capset(odd, (odd[0] = 1, caps)));
	printf("personality %d\n", personality(0xffffffff) >= 0);

	/* The machine. */
	fails("sethostname", sethostname((void *)8, 3) == -1 ? -2 : 0);
	fails("setdomainname", setdomainname((void *)8, 3) == -1 ? -2 : 0);
	fails("reboot", reboot(0x1234));
	fails("acct", acct("outside.none/x"));
	fails("swapon", swapon("outside.none/x", 0));
	fails("swapoff", swapoff("outside.none/x"));
	fails("init_module", init_module(0, 0, 0) == -1 ? -2 : 0);
	fails("delete_module", delete_module("outside.none", 0) == -1 ? -2 : 0);
	fails("klogctl", klogctl(99, 0, 0));
	fflush(stdout);
	if ((pid = fork()) == 0) {
		setsid();
		vhangup();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("outside %d\n", status);
	return 0;
}

// prctl takes what its option says. Sandboxes: filters that kill for what a program does not do itself, and those that do not.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static void locks(int n)
{
	while (n--) {
		pthread_mutex_lock(&m);
		pthread_mutex_unlock(&m);
	}
}

/* Only write, exit and sigreturn; all else has this action. */
static int narrow(unsigned action, int by_syscall)
{
	struct sock_filter f[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 3, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, action),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {6, f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}

static void ended(const char *what)
{
	int st = 0;
	wait(&st);
	printf("%s: %d %d\n", what, WIFEXITED(st) ? WEXITSTATUS(st) : -1, WIFSIGNALED(st) ? WTERMSIG(st) : 0);
}

/* A name that goes on to the end of what can be read: the kernel reads 15 bytes. */
static void long_name(void)
{
	char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), name[16] = "";
	int i;
	mprotect(p + 4096, 4096, PROT_NONE);
	for (i = 0; i < 16; i++)
		p[4080 + i] = (char)('a' + i);
	for (i = 16; i > 13; i--) {
		printf("%d", prctl(PR_SET_NAME, p + 4096 - i));
		prctl(PR_GET_NAME, name);
		printf(" %s\n", name);
	}
	munmap(p, 8192);
}

static void options(void)
{
	char name[16] = "";
	int sig = 0;
	long_name();
	printf("%d", prctl(PR_SET_NAME, "renamed"));
	printf(" %d %s\n", prctl(PR_GET_NAME, name), name);
	printf("%d", prctl(PR_SET_PDEATHSIG, SIGUSR1));
	prctl(PR_GET_PDEATHSIG, &sig);
	printf(" %d\n", sig == SIGUSR1);
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE));
	printf("invalid %d %d\n", prctl(12345, 0, 0, 0, 0), errno == EINVAL);
	printf("EFAULT %d %d\n", prctl(PR_SET_NAME, 8), errno == EFAULT);
}

static volatile int alarms;

static void counts(int sig)
{
	alarms++;
}

static void *lives(void *p)
{
	locks(3);
	usleep(1000);
	return p;
}

/* Reading the time stamp counter is a fault from here on, in threads and children and after exec, too. */
static void unstamped(void)
{
	struct itimerval soon = {{0, 0}, {0, 10000}};
	struct sigaction was;
	struct timespec past = {1, 0};
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	pthread_t t;
	signal(SIGALRM, counts);
	locks(3);
	prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	sigaction(SIGALRM, 0, &was);
	printf("handler %d\n", was.sa_handler == counts);
	printf("handler %d\n", signal(SIGALRM, counts) == counts);
	pthread_create(&t, 0, lives, 0);
	pthread_join(t, 0);
	setitimer(ITIMER_REAL, &soon, 0);
	while (!alarms)
		usleep(1000);
	if (fork() == 0) {
		usleep(100);
		pthread_mutex_lock(&m);
		pthread_cond_timedwait(&c, &m, &past);
		syscall(SYS_exit, 8);
	}
	ended("child");
	if (fork() == 0) {
		execl("/bin/sh", "sh", "-c", "exit 9", (char *)0);
		_exit(1);
	}
	ended("program");
	exit(10);
}

int main(void)
{
	int i;
	setvbuf(stdout, 0, _IONBF, 0);
	options();
	if (fork() == 0) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		write(1, "strict\n", 7);
		locks(3);
		syscall(SYS_exit, 3);
	}
	ended("strict");
	if (fork() == 0)
		unstamped();
	ended("unstamped");
	locks(3);
	for (i = 0; i < 2; i++) {
		if (fork() == 0) {
			locks(10);
			if (narrow(SECCOMP_RET_KILL_PROCESS, i))
				_exit(1);
			locks(200000);
			write(1, "killing\n", 8);
			_exit(3);
		}
		ended("kill");
		if (fork() == 0) {
			if (narrow(SECCOMP_RET_ERRNO | EPERM, i))
				_exit(1);
			locks(200000);
			write(1, "refusing\n", 9);
			_exit(4);
		}
		ended("errno");
	}
	if (fork() == 0) {
		narrow(SECCOMP_RET_KILL_PROCESS, 0);
		getppid();
		_exit(5);
	}
	ended("its own");
	if (fork() == 0)
		_exit(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8) == -1 && errno == EFAULT ? 6 : 7);
	ended("EFAULT");
	return 0;
}

// A child in a pid namespace of its own, where it is process 1, ends by a system call that no library sees.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void leave(int status)
{
#ifdef __x86_64__
	__asm__ volatile("syscall" : : "a"((long)SYS_exit_group), "D"((long)status) : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = SYS_exit_group, x0 __asm__("x0") = status;
	__asm__ volatile("svc 0" : : "r"(x8), "r"(x0) : "memory");
#endif
}

int main(void)
{
	int status = 0;
	long pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		if (getpid() == 1 && write(1, "one\n", 4) == 4 && write(1, "two\n", 4) == 4)
			leave(7);
		leave(1);
	}
	if (waitpid((pid_t)pid, &status, 0) != pid)
		return 1;
	dprintf(1, "%d\n", WEXITSTATUS(status));
	return 0;
}

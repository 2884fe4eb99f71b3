// What /proc says of processes outside of the run, which a re-execution does not have, and of a child, which it has.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char at[100], data[70000];

static const char *name(int pid, const char *of)
{
	snprintf(at, sizeof at, "/proc/%d%s", pid, of);
	return at;
}

static void show(const char *how, long n)
{
	unsigned sum = 0;
	for (long i = 0; i < n; i++)
		sum = sum * 31 + (unsigned char)data[i];
	printf("%s %s: %ld %x\n", how, at, n, sum);
}

static void look(int pid)
{
	static const char *const files[] = {"/cmdline", "/stat", "/status", "/maps", "/environ", "/none"};
	DIR *d = opendir(name(pid, "/task"));
	int dir;
	for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
		int fd = open(name(pid, files[i]), O_RDONLY);
		FILE *f;
		show("open", fd < 0 ? fd : read(fd, data, sizeof data));
		if (fd >= 0)
			close(fd);
		if ((f = fopen(at, "r"))) {
			show("fopen", (long)fread(data, 1, sizeof data, f));
			fclose(f);
		}
	}
	dir = open(name(pid, ""), O_RDONLY | O_DIRECTORY);
	if (dir >= 0) {
		int fd = openat(dir, "comm", O_RDONLY);
		show("openat", fd < 0 ? fd : read(fd, data, sizeof data));
		close(fd);
		close(dir);
	}
	for (struct dirent *e; d && (e = readdir(d));)
		printf("task %s\n", e->d_name);
	if (d)
		closedir(d);
	d = opendir(name(pid, "/fd"));
	printf("%s: %s\n", at, d ? "opened" : "refused");
	if (d)
		closedir(d);
}

int main(void)
{
	int child = fork();
	if (!child) {
		pause();
		_exit(0);
	}
	look(1);
	look(getppid());
	look(child);
	kill(child, SIGKILL);
	waitpid(child, 0, 0);
	look(child);
	return 0;
}

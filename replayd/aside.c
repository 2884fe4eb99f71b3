/* What is best done while there is one thread, before Go starts.
 *
 * A stage becomes process 1 of a world whose program may want any low number, but threads of Go's take the next ones. So what
 * comes after process 1 begins high; runtime/inside looks whether it did. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 64, HIGH = 500 }; /* as highPID and highFD in runtime/inside */

/* Descriptors of ours lie high. For a first one there the kernel enlarges the table, and where threads share it waits until all
 * have seen that: 8 ms of 60 that re-executing /bin/true took. */
__attribute__((constructor)) static void widen(void)
{
	int fd = fcntl(2, F_DUPFD_CLOEXEC, HIGH);
	if (fd >= 0)
		close(fd);
}

__attribute__((constructor)) static void aside(int argc, char **argv)
{
	char text[32] = "";
	int fd, most;
	if (argc != 4 || strcmp(argv[0], "prophet-inside-stage") || getpid() != 1)
		return;
	fd = open("/proc/sys/kernel/pid_max", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	most = read(fd, text, sizeof text - 1) > 0 ? atoi(text) : 0;
	close(fd);
	fd = most > 2 * ROOM ? open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	if (write(fd, text, (size_t)snprintf(text, sizeof text, "%d", most - ROOM - 1)) < 0) {
		/* Refused: it begins again. */
	}
	close(fd);
}

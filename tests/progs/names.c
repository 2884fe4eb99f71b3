/* Uses names that would do harm to who shows them without care: of files, a thread, a socket and arguments. Prints how
 * many files it made. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *other(void *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

int main(void)
{
	static const char *names[] = {
	    "a<img src=x onerror=pwned=1>", "<script>pwned=2<\\script>", "c\"'><svg onload=pwned=3>", "d\x1b]0;title\x07\x1b[31mred",
	    "e\xe2\x80\xaetxt.exe",	    "f\nsecond line\r\ttab",	 "g\xff\xfe not UTF-8",	      "h{{.}}${pwned=4}`",
	    "i'; drop table events; --",    "j&lt;b&gt;&#x3c;",		 "k\xe2\x80\xa8line",	      "]]>--><!--",
	};
	int made = 0;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		int fd = open(names[i], O_CREAT | O_RDWR, 0600);
		if (fd < 0)
			continue;
		made++;
		if (write(fd, "x", 1) == 1)
			fsync(fd);
		close(fd);
	}
	/* A name with slashes in it needs directories: here one ends a script. */
	int fd = open("no/</script><script>pwned=5</script>", O_RDONLY);
	if (fd >= 0)
		close(fd);
	pthread_t th;
	pthread_mutex_lock(&lock);
	pthread_create(&th, 0, other, "<b\x1b[1mx\xe2\x80\xae\"'>");
	usleep(20000);
	pthread_mutex_unlock(&lock);
	pthread_join(th, 0);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX, .sun_path = "no-such<img src=x onerror=pwned=6>"};
	connect(s, (struct sockaddr *)&a, sizeof a);
	printf("%d\n", made);
	return 0;
}

// Puts secrets wherever a trace may have one. Each is a word that begins as SECRET says, which the test looks for.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "prophet.h"

#define SECRET "zq7x"

static void *thread(void *arg)
{
	pthread_setname_np(pthread_self(), SECRET "thread");
	prctl(PR_SET_NAME, SECRET "prctl");
	return arg;
}

static void files(void)
{
	char b[256];
	struct stat st;
	struct dirent *e;
	DIR *d;
	int fd;
	FILE *f;
	mkdir(SECRET "dir", 0700);
	fd = open(SECRET "dir/" SECRET "file.txt", O_RDWR | O_CREAT, 0600);
	write(fd, SECRET "written", 11);
	pread(fd, b, 11, 0);
	close(fd);
	stat(SECRET "stat", &st);
	symlink(SECRET "target", SECRET "link");
	readlink(SECRET "link", b, sizeof b);
	rename(SECRET "dir/" SECRET "file.txt", SECRET "dir/" SECRET "renamed");
	realpath(SECRET "dir/" SECRET "renamed", b);
	for (d = opendir(SECRET "dir"); d && (e = readdir(d));)
		;
	closedir(d);
	setxattr(SECRET "dir", "user." SECRET "xname", SECRET "xvalue", 10, 0);
	getxattr(SECRET "dir", "user." SECRET "xname", b, sizeof b);
	listxattr(SECRET "dir", b, sizeof b);
	chdir(SECRET "dir");
	getcwd(b, sizeof b);
	chdir("..");
	f = fopen(SECRET "stdio", "w+");
	fprintf(f, SECRET "printed");
	rewind(f);
	fgets(b, sizeof b, f);
	fclose(f);
	fd = open("before", O_WRONLY); // holds a secret: it is kept as it was before the run
	write(fd, "x", 1);
	close(fd);
	fd = open("before", O_RDONLY | O_CLOEXEC);
	mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
}

static void network(void)
{
	struct sockaddr_un un = {AF_UNIX, SECRET "unix"}, abs = {AF_UNIX, "\0" SECRET "abstract"};
	struct sockaddr_in in = {AF_INET, htons(0x7a71), {htonl(0x5d714e2f)}, {0}};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
	struct msghdr m = {.msg_name = &un, .msg_namelen = sizeof un};
	struct iovec v = {SECRET "message", 11};
	int s = socket(AF_UNIX, SOCK_DGRAM, 0), c = socket(AF_UNIX, SOCK_DGRAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0), p[2];
	char b[64];
	bind(s, (struct sockaddr *)&un, sizeof un);
	bind(c, (struct sockaddr *)&abs, sizeof(sa_family_t) + 1 + strlen(SECRET "abstract"));
	connect(c, (struct sockaddr *)&un, sizeof un);
	send(c, SECRET "sent", 8, 0);
	recv(s, b, sizeof b, 0);
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	sendmsg(c, &m, 0);
	recv(s, b, sizeof b, 0);
	connect(u, (struct sockaddr *)&in, sizeof in); // of a datagram socket: nothing is sent
	getpeername(u, (struct sockaddr *)&un, &(socklen_t){sizeof un});
	inet_pton(AF_INET6, "2a0e:7a71:3738:78::5d71", &in6.sin6_addr);
	connect(socket(AF_INET6, SOCK_DGRAM, 0), (struct sockaddr *)&in6, sizeof in6);
	getaddrinfo(SECRET "host.invalid", "80", &hint, &found);
	getaddrinfo("93.113.78.47", SECRET "serv", &hint, &found);
	gethostbyname(SECRET "old.invalid");
	pipe(p);
	write(p[1], SECRET "pipe", 8);
	read(p[0], b, 8);
}

int main(int argc, char **argv)
{
	struct utsname u;
	char b[300], *args[] = {SECRET "argv0", SECRET "childarg", 0}, *env[] = {SECRET "ENV=" SECRET "value", 0};
	pthread_t t;
	pid_t pid;
	if (argc == 2)
		return 0;
	prophet_mark(SECRET "mark");
	prophet_begin(SECRET "begin");
	prophet_end(SECRET "begin");
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, 0);
	files();
	network();
	uname(&u);
	gethostname(b, sizeof b);
	getrandom(b, 8, 0);
	sem_close(sem_open("/" SECRET "sem", O_CREAT, 0600, 1));
	sem_unlink("/" SECRET "sem");
	close(shm_open("/" SECRET "shm", O_CREAT | O_RDWR, 0600));
	shm_unlink("/" SECRET "shm");
	mq_close(mq_open("/" SECRET "mq", O_CREAT | O_RDWR, 0600, 0));
	mq_unlink("/" SECRET "mq");
	system("true " SECRET "system");
	pclose(popen("true " SECRET "popen", "r"));
	pid = fork();
	if (!pid)
		execve(argv[0], args, env);
	waitpid(pid, 0, 0);
	printf("%s\n", getenv(SECRET "NAME"));
	return 0;
}

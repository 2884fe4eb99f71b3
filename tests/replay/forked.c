/* Processes are forked as another thread accepts connections. A child may have what was accepted before anybody was told, and
 * closes it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 40

static int listener;
static sem_t go;

static void *accepts(void *none)
{
	int i;
	for (i = 0; i < ROUNDS; i++) {
		sem_wait(&go);
		close(accept(listener, 0, 0));
	}
	return none;
}

int main(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	pthread_t t;
	int i, fd = -1, status, had = 0;
	pid_t child;
	sem_init(&go, 0, 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	bind(listener, (struct sockaddr *)&a, sizeof a);
	listen(listener, ROUNDS);
	getsockname(listener, (struct sockaddr *)&a, &len);
	for (i = 0; i < ROUNDS; i++) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		connect(fd, (struct sockaddr *)&a, sizeof a);
	}
	pthread_create(&t, 0, accepts, 0);
	for (i = 0; i < ROUNDS; i++) {
		sem_post(&go);
		child = fork();
		if (!child)
			_exit(close(fd + 1) == 0);
		waitpid(child, &status, 0);
		had += WEXITSTATUS(status);
	}
	pthread_join(t, 0);
	printf("%d\n", had);
	return 0;
}

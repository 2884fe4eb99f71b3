/* What TestTruth re-executes: threads that read a file, draw random numbers, ask the clock, take locks whose order shows, and
 * write what they got, each value by a write of its own. Usage: truth threads rounds word. MORE is where one call more
 * is made than by the program that was recorded. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#ifndef MORE
#define MORE 0
#endif

enum { LOCKS = 3, BLOCK = 64 };
static pthread_mutex_t lock[LOCKS] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static uint64_t state[LOCKS];
static int threads, rounds, in;

struct worker {
	pthread_t t;
	int id, out, pipe[2];
};

static void say(int fd, char what, uint64_t v)
{
	static const char digits[] = "0123456789abcdef";
	char line[19];
	int i;
	line[0] = what;
	line[1] = ' ';
	for (i = 0; i < 16; i++)
		line[2 + i] = digits[v >> (60 - 4 * i) & 15];
	line[18] = '\n';
	if (write(fd, line, sizeof line) != sizeof line)
		_exit(9);
}

static uint64_t hash(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = 14695981039346656037ull;
	while (n--)
		h = (h ^ *c++) * 1099511628211ull;
	return h;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int r;
	for (r = 0; r < rounds; r++) {
		char block[BLOCK];
		struct timespec ts;
		uint64_t v, k = (uint64_t)(w->id + r) % LOCKS;
		pthread_mutex_lock(&lock[k]);
		v = state[k] = state[k] * 31 + (uint64_t)(w->id * 1000 + r + 1);
		pthread_mutex_unlock(&lock[k]);
		say(w->out, 'L', v);
		if (pread(in, block, BLOCK, ((off_t)w->id * rounds + r) * BLOCK) != BLOCK)
			_exit(8);
		say(w->out, 'F', hash(block, BLOCK));
		if (MORE == 1 && w->id == 1 && r == 2)
			lseek(in, 0, SEEK_CUR);
		if (getrandom(&v, sizeof v, 0) != sizeof v)
			_exit(7);
		say(w->out, 'R', v);
		clock_gettime(CLOCK_REALTIME, &ts);
		say(w->out, 'T', (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec);
		say(w->pipe[1], 'P', v);
		if (read(w->pipe[0], block, 19) != 19)
			_exit(6);
		if (MORE == 4 && w->id == 0 && r == 1)
			_exit(4);
	}
	if (MORE == 2 && w->id == 0)
		lseek(in, 0, SEEK_CUR);
	return 0;
}

int main(int argc, char **argv)
{
	struct worker *w;
	int i;
	threads = atoi(argv[1]);
	rounds = atoi(argv[2]);
	w = calloc((size_t)threads, sizeof *w);
	in = open("in", O_RDONLY);
	for (i = 0; i < threads; i++) {
		char name[32];
		w[i].id = i;
		snprintf(name, sizeof name, "out.%d", i);
		w[i].out = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		if (w[i].out < 0 || in < 0 || pipe(w[i].pipe) != 0)
			return 5;
	}
	for (i = 0; i < threads; i++)
		if (pthread_create(&w[i].t, 0, work, &w[i]) != 0)
			return 4;
	for (i = 0; i < threads; i++)
		pthread_join(w[i].t, 0);
	if (MORE == 3)
		lseek(in, 0, SEEK_CUR);
	say(1, 'W', hash(argv[3], strlen(argv[3])));
	return argc == 4 ? 0 : 3;
}

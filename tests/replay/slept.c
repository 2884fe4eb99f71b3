/* Threads and processes that wait for one another by sleeping, and by nothing else: for a flag, for a file, for longer than another. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int flag;
static char order[8];
static volatile int came;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *sets(void *none)
{
	flag = 1;
	sleep(1);
	flag = 2;
	return none;
}

static void *sleeps(void *letter)
{
	usleep(200000 * (unsigned)(*(char *)letter - 'a' + 1));
	order[came++] = *(char *)letter;
	return 0;
}

static void *tries(void *none)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	flag = pthread_rwlock_timedrdlock(&lock, &until) == ETIMEDOUT ? 3 : 4;
	return none;
}

int main(void)
{
	static char letters[] = "bca";
	pthread_t t[3];
	int i, looks = 0, before;
	pthread_create(&t[0], 0, sets, 0);
	while (!flag)
		usleep(300000), looks++;
	before = looks;
	while (flag < 2)
		usleep(300000), looks++;
	pthread_join(t[0], 0);
	printf("%d and %d looks\n", before, looks);
	for (i = 0; i < 3; i++)
		pthread_create(&t[i], 0, sleeps, letters + i);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	printf("%s\n", order);
	flag = looks = 0;
	pthread_rwlock_wrlock(&lock);
	pthread_create(&t[0], 0, tries, 0);
	while (flag != 3)
		poll(0, 0, 300), looks++;
	pthread_join(t[0], 0);
	printf("timed out after %d looks\n", looks);
	fflush(stdout);
	if (fork() == 0) {
		sleep(1);
		close(open("there", O_CREAT | O_WRONLY, 0600));
		_exit(0);
	}
	for (looks = 0; access("there", F_OK) != 0; looks++)
		usleep(300000);
	wait(0);
	printf("there after %d looks\n", looks);
	return 0;
}

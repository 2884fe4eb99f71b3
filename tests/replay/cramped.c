/* Two signals come again and again while threads with the smallest stacks begin and end. */
#include "storm.h"
#include <limits.h>

int main(void)
{
	pthread_t sender[2], t;
	pthread_attr_t small;
	struct sigaction sa = {.sa_handler = handler};
	sigset_t both;
	int i;
	sigemptyset(&both);
	sigaddset(&both, SIGUSR1);
	sigaddset(&both, SIGUSR2);
	for (i = 0; i < 2; i++) {
		sem_init(&handled[i], 0, 1);
		sigaction(i ? SIGUSR2 : SIGUSR1, &sa, 0);
	}
	pthread_sigmask(SIG_BLOCK, &both, 0);
	for (i = 0; i < 2; i++)
		pthread_create(&sender[i], 0, sends, i ? &both : 0);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	pthread_sigmask(SIG_UNBLOCK, &both, 0);
	for (i = 0; i < 300; i++) {
		pthread_create(&t, &small, ends, 0);
		pthread_join(t, 0);
	}
	over = 1;
	for (i = 0; i < 2; i++) {
		sem_post(&handled[i]);
		pthread_join(sender[i], 0);
	}
	printf("%d\n", came > 0);
	return 0;
}

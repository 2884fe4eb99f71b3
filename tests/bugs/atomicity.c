// Atomicity violation: whether there is money is asked under the lock, and it is taken under the lock, but not in
// one go. Guarded: yes, re-executes under order alone. Fails: exit status 1, "overdrawn".
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static void *withdraw(void *a)
{
	int enough;
	pthread_mutex_lock(&m);
	enough = balance >= 100;
	pthread_mutex_unlock(&m);
	if (!enough)
		return 0;
	pthread_mutex_lock(&m);
	balance -= 100;
	pthread_mutex_unlock(&m);
	return 0;
}

int main(void)
{
	pthread_t t[2];
	int i;
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, withdraw, 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	if (balance < 0)
		printf("overdrawn\n");
	return balance < 0;
}

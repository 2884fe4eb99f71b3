// Check, then act: whether a name is in the list is looked up under the lock, and it is put there under the lock, but
// not in one go. Guarded: yes, re-executes under order alone. Fails: exit status 1, "twice in the list".
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct node {
	struct node *next;
	const char *name;
} * list;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

static int count(const char *name)
{
	struct node *n;
	int k = 0;
	pthread_mutex_lock(&m);
	for (n = list; n; n = n->next)
		k += !strcmp(n->name, name);
	pthread_mutex_unlock(&m);
	return k;
}

static void add(struct node *n, const char *name)
{
	n->name = name;
	pthread_mutex_lock(&m);
	n->next = list;
	list = n;
	pthread_mutex_unlock(&m);
}

static void *work(void *a)
{
	static const char *names[] = {"one", "two", "three"};
	struct node *n = malloc(3 * sizeof *n);
	int i;
	for (i = 0; i < 3; i++)
		if (!count(names[i]))
			add(n + i, names[i]);
	return 0;
}

int main(void)
{
	pthread_t t[2];
	int i, failed;
	for (i = 0; i < 2; i++)
		pthread_create(&t[i], 0, work, 0);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], 0);
	failed = count("one") > 1 || count("two") > 1 || count("three") > 1;
	if (failed)
		printf("twice in the list\n");
	return failed;
}

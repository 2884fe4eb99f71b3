// A stack without locks, by compare and swap: a node that went and came back is taken for unchanged. Guarded: no, needs
// --serial. Fails: exit status 1, "lost a node".
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

struct node { struct node *next; int out; };
static struct node nodes[6];
static _Atomic(struct node *) top;

static void push(struct node *n)
{
	struct node *t = top;
	do
		n->next = t;
	while (!atomic_compare_exchange_weak(&top, &t, n));
}

static struct node *pop(void)
{
	struct node *t = top;
	do {
		if (!t)
			return 0;
		struct node *next = t->next;
		getppid(); // here the others come and go
		if (atomic_compare_exchange_weak(&top, &t, next))
			return t;
	} while (1);
}

static void *work(void *a)
{
	for (int i = 0; i < 100; i++) {
		struct node *x = pop(), *y = pop();
		if (x)
			push(x);
		if (y)
			push(y);
	}
	return 0;
}

int main(void)
{
	for (int i = 0; i < 6; i++)
		push(&nodes[i]);
	pthread_t t[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, work, 0);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	int n = 0;
	for (struct node *x = top; x && n < 100; x = x->next)
		n++;
	if (n != 6) {
		printf("lost a node: %d\n", n);
		return 1;
	}
	return 0;
}

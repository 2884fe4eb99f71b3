/* Calls that sleep for longer than it takes until a stack is due, from known chains of callers. Every function of a
 * chain begins with c_; tests/stacks_test.go has the chains. */
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define CHAIN __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory") /* so that the call before is no jump */

static volatile int sink;

CHAIN static void c_leaf(void)
{
	usleep(25000);
	AFTER();
}

CHAIN static void c_plain(int n)
{
	if (n)
		c_plain(n - 1);
	else
		c_leaf();
	AFTER();
}

CHAIN static void c_variable(int n)
{
	char *p = alloca((size_t)n * 100);
	memset(p, n, (size_t)n * 100);
	c_leaf();
	sink = p[n];
}

CHAIN static void c_aligned(int n)
{
	char a[64] __attribute__((aligned(128)));
	char *p = alloca((size_t)n);
	memset(a, n, sizeof a);
	memset(p, n, (size_t)n);
	c_leaf();
	sink = a[n & 31] + p[0];
}

CHAIN static void c_registers(long a, long b, long c, long d, long e, long f)
{
	long i, j, k = a * b, l = c * d, m = e * f, n = a + b + c;
	for (i = 0, j = 1; i < 3; i++)
		j += k * i + l + m + n;
	c_leaf();
	sink = (int)(a + b + c + d + e + f + j + k + l + m + n);
}

static int c_compare(const void *a, const void *b)
{
	static int once;
	if (!once++)
		c_leaf();
	return *(const int *)a - *(const int *)b;
}

CHAIN static void c_callback(void)
{
	int v[3] = {3, 1, 2};
	qsort(v, 3, sizeof *v, c_compare);
	sink = v[0];
}

static void c_handler(int sig)
{
	c_leaf();
	sink = sig;
}

CHAIN static void c_raises(void)
{
	raise(SIGUSR1);
	AFTER();
}

static sigjmp_buf out;

CHAIN static void c_faults(int *p)
{
	if (!sigsetjmp(out, 1))
		*(volatile int *)p = 1; /* no call: the handler interrupts this very place */
	AFTER();
}

static void c_fault(int sig)
{
	c_leaf();
	siglongjmp(out, sig);
}

static ucontext_t back, there;

static void c_coroutine(void)
{
	c_leaf();
	swapcontext(&there, &back);
}

CHAIN static void c_switches(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof stack;
	makecontext(&there, c_coroutine, 0);
	swapcontext(&back, &there);
	AFTER();
}

static void *c_thread(void *a)
{
	c_leaf();
	return a;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CHAIN static void c_waits(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	AFTER();
}

static void *c_waiter(void *a)
{
	c_waits();
	return a;
}

CHAIN static void c_holds(void)
{
	pthread_t t;
	pthread_mutex_lock(&lock);
	pthread_create(&t, 0, c_waiter, 0);
	c_leaf();
	pthread_mutex_unlock(&lock);
	pthread_join(t, 0);
}

static void c_atexit(void)
{
	c_leaf();
}

int main(void)
{
	struct sigaction sa;
	stack_t alt;
	pthread_t t;
	atexit(c_atexit);
	c_plain(2);
	c_variable(10);
	c_aligned(7);
	c_registers(1, 2, 3, 4, 5, 6);
	c_callback();
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = c_handler;
	sigaction(SIGUSR1, &sa, 0);
	c_raises();
	alt.ss_sp = malloc(1 << 16);
	alt.ss_size = 1 << 16;
	alt.ss_flags = 0;
	sigaltstack(&alt, 0);
	sa.sa_handler = c_fault;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGSEGV, &sa, 0);
	c_faults((int *)8);
	c_switches();
	pthread_create(&t, 0, c_thread, 0);
	pthread_join(t, 0);
	c_holds();
	c_plain(300);
	puts("done");
	return 0;
}

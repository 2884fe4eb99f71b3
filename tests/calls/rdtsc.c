// options: serial
// The time stamp counter, read by the instruction, between other registers and in a library of its own.
#include <emmintrin.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t stamp(void)
{
	uint32_t low, high;
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

/* The registers, the flags and what lies below the stack are as they were. */
static int kept(void)
{
	uint64_t r[10] = {0}, flags = 0, below = 0;
	__m128i x = _mm_set1_epi32(0x1234567);
	__asm__ volatile("mov $1, %%ecx\n mov $2, %%esi\n mov $3, %%edi\n mov $4, %%r8d\n mov $5, %%r9d\n mov $6, %%r10d\n mov $7, %%r11d\n"
			 "movq $77, -64(%%rsp)\n stc\n"
			 "rdtsc\n shl $32, %%rdx\n or %%rdx, %%rax\n"
			 "mov -64(%%rsp), %%rdx\n mov %%rdx, %1\n mov %%rcx, %0\n add %%rsi, %0\n add %%rdi, %0\n add %%r8, %0\n add %%r9, %0\n add %%r10, "
			 "%0\n add %%r11, %0\n"
			 : "=m"(r[0]), "=m"(below), "+x"(x)
			 :
			 : "rax", "rdx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "memory");
	(void)flags;
	return r[0] == 28 && below == 77 && _mm_cvtsi128_si32(x) == 0x1234567;
}

/* The halves go to memory, and are put together much later: what comes of it is written, so that a re-execution that read the counter
 * itself differs. */
static __attribute__((noinline)) uint64_t apart(void)
{
	uint32_t low = 0, high = 0;
	__asm__ volatile("rdtsc\n movl %%eax, %0\n .rept 40\n nop\n .endr\n movl %%edx, %1" : "=m"(low), "=m"(high) : : "rax", "rdx", "memory");
	return (uint64_t)high << 32 | low;
}

/* A loop that begins behind the instruction: it is left alone, as a jump there would lead into what replaced it. */
static __attribute__((noinline)) int looped(void)
{
	int n = 5;
	__asm__ volatile("xor %%eax, %%eax\n rdtsc\n 1: movl %0, %%eax\n .rept 20\n nop\n .endr\n sub $1, %%eax\n movl %%eax, %0\n jnz 1b"
			 : "+m"(n)
			 :
			 : "rax", "rdx", "memory", "cc");
	return n;
}

/* The one that tells the core, too; that does not change where there is one only. */
static int cored(void)
{
	uint64_t a, b, kept = 77;
	unsigned core = ~0u, last = ~0u;
	int i, good = 1;
	for (i = 0; i < 10; i++) {
		a = __builtin_ia32_rdtscp(&core);
		b = __builtin_ia32_rdtscp(&last);
		good &= b > a && core != ~0u && last != ~0u;
	}
	__asm__ volatile("mov $77, %%esi\n rdtscp\n shl $32, %%rdx\n or %%rdx, %%rax\n mov %%rsi, %0" : "=m"(kept) : : "rax", "rdx", "rcx", "rsi", "cc");
	return good && kept == 77;
}

int main(void)
{
	uint64_t a = stamp(), b = stamp(), c = 0, i;
	int file = open("rdtsc.data", O_WRONLY | O_CREAT, 0600);
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	for (i = 0; i < 100; i++) {
		uint64_t now = stamp();
		c += now > a;
	}
	for (i = 0; i < 3; i++) {
		uint64_t now = apart();
		write(file, &now, sizeof now);
	}
	unlink("rdtsc.data");
	printf("%d %d %d %d %d %d\n", a != 0, b > a, (int)c, kept(), cored(), looped());
	return 0;
}

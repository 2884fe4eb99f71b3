/* What differs between machines, in one place: raw system calls, ticks, the commit instruction.
 *
 * Rules: no other file in shim has an #if on the architecture. Nothing here touches errno or calls libc, so
 * everything may be used before our constructor, after our destructors and in signal handlers.
 */
#ifndef SHIM_PLATFORM_H
#define SHIM_PLATFORM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
/* The program may pass NULL where headers forbid it; the compiler must not believe them here. */
#define __nonnull(params)
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default")))
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((noinline, cold))
/* Rarely run, and out of the way of what is: the kernel maps 64 KiB around what is touched. */
#define FAR __attribute__((section(".text.unlikely.far")))
#define CALLER() __builtin_return_address(0)
#define barrier() __asm__ volatile("" ::: "memory")

#if defined(__x86_64__)

#include <cpuid.h>

#define SHIM_ARCH "x86_64"
#define SHIM_SPIN_FREE 1 /* pthread_spinlock_t that nobody holds */
#define SHIM_OLD_VERSIONS 1 /* the C library has the condition variables of GLIBC_2.2.5, too */
#define SHIM_SYSCALLS_CANONICAL 1 /* the trace's numbers of system calls are this machine's */
#define SHIM_ELF_MACHINE 62
#define SHIM_AUDIT_ARCH 0xc000003eu
#define SHIM_O_LARGEFILE 0100000

static inline u64 shim_ticks(void)
{
	u32 lo, hi;
	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return ((u64)hi << 32) | lo;
}

/* About: what it is for needs no more, and a PC does not say. */
/* The same, but not before what was read before it: a processor may read its counter ahead of loads that precede it. */
static inline u64 shim_ticks_after(void)
{
	__asm__ volatile("lfence" ::: "memory");
	return shim_ticks();
}

static inline u64 shim_ticks_per_ms(void)
{
	return 2500000;
}

/* Behind an unlocking of the C library's, which is one instruction that orders all: what is read after it was read after it. */
static inline void shim_unlocked(void)
{
	barrier();
}

static inline void shim_pause(void)
{
	__asm__ volatile("pause");
}

/* Commit: atomic against signal handlers of the same thread only, hence no lock prefix. */
static inline int shim_commit_at(u64 *p, u64 was, u64 is)
{
	u8 ok;
	__asm__ volatile("cmpxchgq %3, %1" : "=@ccz"(ok), "+m"(*p), "+a"(was) : "r"(is) : "memory");
	return ok;
}

/* Where a signal found the thread. */
#define SHIM_CONTEXT_PC(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.gregs[REG_RIP])
#define SHIM_CONTEXT_SP(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.gregs[REG_RSP])
#define SHIM_CONTEXT_FP(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.gregs[REG_RBP])
#define SHIM_CONTEXT_LR(context) 0ul
#define SHIM_SA_RESTORER 0x04000000u /* the C library gives it to the kernel with each handler, and hands it on */
#define SHIM_CONTEXT_ALWAYS 1 /* handlers get it without SA_SIGINFO, too */

/* Whether a signal came as a system call returned, which it had not interrupted. Where that is to be made again it is ahead. */
static inline int shim_context_over(const void *context)
{
	u64 pc = SHIM_CONTEXT_PC(context);
	return (pc & 4095) >= 2 && *(const u16 *)(pc - 2) == 0x050f && ((const ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] != -EINTR;
}

/* Places between two calls (step.c): registers that tell one pass of a loop from another, and a trap after each instruction. */
#define SHIM_STEPS 1
#define SHIM_REGISTERS 12

#define SHIM_RESULT 1 /* which of them has a call's result, as bits */
#define SHIM_SCRATCH 0xfc /* which a call leaves anyhow */

static inline u64 *shim_context_register(const void *context, u32 i)
{
	static const u8 which[SHIM_REGISTERS] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_R8, REG_R9, REG_R12, REG_R13, REG_R14, REG_R15};
	return (u64 *)&((ucontext_t *)context)->uc_mcontext.gregs[which[i]];
}

#define SHIM_TRAP 0x100 /* of the flags */

static inline int shim_context_traps(void *context, int on)
{
	greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
	int was = (*flags & SHIM_TRAP) != 0;
	*flags = on ? *flags | SHIM_TRAP : *flags & ~(greg_t)SHIM_TRAP;
	return was;
}

/* Nothing of it stays below the stack. */
static inline void shim_traps_on(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n movq $0, -8(%%rsp)\n lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

static inline void shim_traps_off(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::: "memory", "cc");
}

/* What the instruction at p does that a trap behind it must know of. */
enum { SHIM_PLAIN, SHIM_KEEPS_FLAGS, SHIM_ASKS_KERNEL };

static inline u32 shim_instruction(const u8 *p)
{
	return p[0] == 0x9c ? SHIM_KEEPS_FLAGS : p[0] == 0x0f && p[1] == 0x05 ? SHIM_ASKS_KERNEL : SHIM_PLAIN;
}

/* Stacks (cfi.c): registers' numbers in unwind tables, and where a handler's return finds what it interrupted. */
#define SHIM_DWARF_FP 6
#define SHIM_DWARF_SP 7
#define SHIM_SIGNAL_CONTEXT 0 /* from the stack pointer to the ucontext_t */
#define SHIM_RETURNS_FROM_SIGNAL(pc) (*(const u64 *)(pc) == 0x0f0000000fc0c748ul && ((const u8 *)(pc))[8] == 0x05) /* mov $15,%rax; syscall */
#define SHIM_PLAIN_PC(pc) (pc)
#define SHIM_HERE(pc, sp, fp, lr)                                                                                            \
	do {                                                                                                                 \
		__asm__ volatile("movq %%rbp, %2\n\tmovq %%rsp, %1\n\tleaq 0(%%rip), %0" : "=&r"(pc), "=&r"(sp), "=&r"(fp)); \
		(lr) = 0;                                                                                                    \
	} while (0)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	long r;
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}

/* A function NAME that calls BEFORE(return address, call) and jumps to what it returns, with the stack as it was. */
#define SHIM_JUMP_TO_(NAME, BEFORE, CALL)                                                                               \
	__asm__(".text\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ":\n.cfi_startproc\nendbr64\n"            \
		"movq (%rsp), %rdi\nmovl $" #CALL ", %esi\nsubq $8, %rsp\n.cfi_adjust_cfa_offset 8\ncall " #BEFORE "\n" \
		"addq $8, %rsp\n.cfi_adjust_cfa_offset -8\njmp *%rax\n.cfi_endproc\n.size " #NAME ", .-" #NAME "\n");

/* A function NAME that is vfork, but that the parent gets what AFTER(the kernel's answer) returns. */
#define SHIM_VFORK_THEN(NAME, AFTER)                                                                            \
	__asm__(".text\n.hidden " #NAME "\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ":\nendbr64\n" \
		"popq %rdi\nmovl $58, %eax\nsyscall\npushq %rdi\ntestl %eax, %eax\njz 1f\n"                     \
		"movq %rax, %rdi\njmp " #AFTER "\n1:\nret\n.size " #NAME ", .-" #NAME "\n");

#define SHIM_STAMPS 1 /* stamps.c knows the instructions */

/* A wrapper that has always made a system call when it returns. On processors whose kernel empties what they remember of
 * who called, each return after one is predicted wrongly (46 ns with one thread and 70 with more, on Zen), a jump is not. It
 * goes through __x86_return_thunk (syscall_amd64.S), which does what shim_leaps says. Nothing else may have it: where
 * no system call was made the memory of callers is good, and a jump leaves it wrong for those that return after. */
#define LEAP __attribute__((function_return("thunk-extern")))
#define SHIM_LEAPS 1

/* Whether the program's stack has a shadow, which a jump would leave behind. */
static inline int shim_shadowed(void)
{
	u64 p = 0;
	__asm__ volatile("rdsspq %0" : "+r"(p));
	return p != 0;
}

/* Which registers wider than these 128 bits there are, and the system keeps: 1 of AVX, 2 of AVX-512. Asked of the processor
 * itself: what the compiler has for it asks at each start of each program, and under a hypervisor each such question takes
 * microseconds. */
static inline u32 shim_wide_registers(void)
{
	u32 a, b, c, d, kept;
	if (!__get_cpuid(1, &a, &b, &c, &d) || ~c & (bit_OSXSAVE | bit_AVX))
		return 0;
	__asm__ volatile("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
	if ((kept & 6) != 6)
		return 0;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && !(~b & (bit_AVX512F | bit_AVX512VL)) && (kept & 0xe6) == 0xe6 ? 2 : 1;
}

/* Clears n bytes below the stack, and the registers that a call need not keep. One of them is left with something: whether all
 * are as after a reset the processor tells who saves them (the dynamic linker does, on the stack), and it tells so no more when
 * the kernel has saved and restored them meanwhile. */
static inline __attribute__((always_inline)) void shim_clear_below(u64 n, u32 wide)
{
	if (wide == 2)
		__asm__ volatile(".irp n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31\n vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n\n .endr\n"
				 ".irp n, 0, 1, 2, 3, 4, 5, 6, 7\n kxorw %%k\\n, %%k\\n, %%k\\n\n .endr\n" ::
				     : "memory");
	if (wide)
		__asm__ volatile("vzeroall" ::
				     : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
				       "xmm14", "xmm15", "memory");
	__asm__ volatile("mov %%rsp, %%rdi\n sub %0, %%rdi\n mov %0, %%rcx\n xor %%eax, %%eax\n cld\n rep stosb\n"
			 ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n pxor %%xmm\\n, %%xmm\\n\n .endr\n"
			 "pcmpeqd %%xmm15, %%xmm15\n"
			 "xor %%edx, %%edx\n xor %%esi, %%esi\n xor %%r8d, %%r8d\n xor %%r9d, %%r9d\n xor %%r10d, %%r10d\n xor %%r11d, %%r11d\n"
			 :
			 : "r"(n)
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
			   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

/* What the compiler puts between a frame's buffers and its return address. */
#define SHIM_GUARD_SET(v) __asm__ volatile("mov %0, %%fs:0x28" ::"r"(v) : "memory")

#elif defined(__aarch64__)

#define SHIM_ARCH "aarch64"
#define SHIM_SPIN_FREE 0
#define SHIM_OLD_VERSIONS 0
#define SHIM_SYSCALLS_CANONICAL 0
#define SHIM_ELF_MACHINE 183
#define SHIM_AUDIT_ARCH 0xc00000b7u
#define SHIM_O_LARGEFILE 0400000

static inline u64 shim_ticks(void)
{
	u64 v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
}

static inline u64 shim_ticks_after(void)
{
	__asm__ volatile("isb" ::: "memory");
	return shim_ticks();
}

static inline u64 shim_ticks_per_ms(void)
{
	u64 hz;
	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz >= 1000000 && hz < 10000000000ull ? hz / 1000 : 62500;
}

static inline void shim_unlocked(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline void shim_pause(void)
{
	__asm__ volatile("yield");
}

static inline int shim_commit_at(u64 *p, u64 was, u64 is)
{
	return __atomic_compare_exchange_n(p, &was, is, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

#define SHIM_CONTEXT_PC(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.pc)
#define SHIM_CONTEXT_SP(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.sp)
#define SHIM_CONTEXT_FP(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.regs[29])
#define SHIM_CONTEXT_LR(context) ((u64)((const ucontext_t *)(context))->uc_mcontext.regs[30])
#define SHIM_SA_RESTORER 0u
#define SHIM_CONTEXT_ALWAYS 0
#define SHIM_STEPS 0

static inline int shim_context_over(const void *context)
{
	u64 pc = SHIM_CONTEXT_PC(context);
	return (pc & 4095) >= 4 && *(const u32 *)(pc - 4) == 0xd4000001u && (i64)((const ucontext_t *)context)->uc_mcontext.regs[0] != -EINTR;
}

#define SHIM_DWARF_FP 29
#define SHIM_DWARF_SP 31
#define SHIM_SIGNAL_CONTEXT 128 /* behind the siginfo_t */
#define SHIM_RETURNS_FROM_SIGNAL(pc) (*(const u64 *)(pc) == 0xd4000001d2801168ul) /* mov x8, #139; svc #0 */
#define SHIM_PLAIN_PC(pc) ((pc)&0xfffffffffffful) /* without its signature */
#define SHIM_HERE(pc, sp, fp, lr) __asm__ volatile("mov %3, x30\n\tmov %2, x29\n\tmov %1, sp\n\tadr %0, ." : "=&r"(pc), "=&r"(sp), "=&r"(fp), "=&r"(lr))

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

#define SHIM_JUMP_TO_(NAME, BEFORE, CALL)                                                                         \
	__asm__(".text\n.globl " #NAME "\n.type " #NAME ", %function\n" #NAME ":\n.cfi_startproc\nhint #34\n"     \
		"stp x29, x30, [sp, #-16]!\n.cfi_adjust_cfa_offset 16\n.cfi_offset 29, -16\n.cfi_offset 30, -8\n" \
		"mov x0, x30\nmov w1, #" #CALL "\nbl " #BEFORE "\nmov x16, x0\n"                                  \
		"ldp x29, x30, [sp], #16\n.cfi_adjust_cfa_offset -16\n.cfi_restore 29\n.cfi_restore 30\n"         \
		"br x16\n.cfi_endproc\n.size " #NAME ", .-" #NAME "\n");

#define SHIM_VFORK_THEN(NAME, AFTER)                                                                             \
	__asm__(".text\n.hidden " #NAME "\n.globl " #NAME "\n.type " #NAME ", %function\n" #NAME ":\nhint #34\n" \
		"mov x0, #0x4111\nmov x1, xzr\nmov x2, xzr\nmov x3, xzr\nmov x4, xzr\nmov x8, #220\nsvc #0\n"    \
		"cbz x0, 1f\nb " #AFTER "\n1:\nret\n.size " #NAME ", .-" #NAME "\n");

#define SHIM_STAMPS 0
#define LEAP
#define SHIM_LEAPS 0

static inline u32 shim_wide_registers(void)
{
	return 0;
}

static inline __attribute__((always_inline)) void shim_clear_below(u64 n, u32 wide)
{
	u8 *p = (u8 *)__builtin_frame_address(0) - n;
	(void)wide;
	for (n -= 256; n; n--, p++)
		*(volatile u8 *)p = 0;
}

#define SHIM_GUARD_SET(v) ((void)(v)) /* lies where only the dynamic linker may write */

#else
#error "prophet knows amd64 and arm64"
#endif

#define SHIM_JUMP_TO(NAME, BEFORE, CALL) SHIM_JUMP_TO_(NAME, BEFORE, CALL)

#define SYS_PICK(_0, _1, _2, _3, _4, _5, _6, N, ...) N
#define sys_1(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define sys_2(n, a) sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define sys_3(n, a, b) sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define sys_4(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sys_5(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define sys_6(n, a, b, c, d, e) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define sys_7(n, a, b, c, d, e, f) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* sys(SYS_x, args…): the kernel's answer, -errno on error; errno is not touched. */
#define sys(...) SYS_PICK(__VA_ARGS__, sys_7, sys_6, sys_5, sys_4, sys_3, sys_2, sys_1)(__VA_ARGS__)

#endif

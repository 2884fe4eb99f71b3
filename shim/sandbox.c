/* Sandboxes: a seccomp filter may kill a process for a system call that only we make. So before a filter is installed
 * it is run here, on the calls that recording needs; where one of them would raise a signal, end the process or ask a
 * supervisor, the rings go out and the process is recorded no further. Calls that the filter refuses with an error
 * are no harm: we take errors as they come. A program may also forbid itself to read the time stamp counter; that is kept
 * over exec.
 */
#include "sandbox.h"
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static const struct need {
	u32 nr;
	u32 a0, a1, a2, a3; /* as we call it; addresses are 0 */
} needs[] = {
    {SYS_write, 4096, 0, 64, 0},
    {SYS_writev, 4096, 0, 2, 0},
    {SYS_rt_sigprocmask, 0, 0, 0, 8},
    {SYS_rt_sigpending, 0, 8, 0, 0},
    {SYS_rt_sigtimedwait, 0, 0, 0, 8},
    {SYS_fstat, 4096, 0, 0, 0},
    {SYS_fstatfs, 4096, 0, 0, 0},
    {SYS_newfstatat, (u32)AT_FDCWD, 0, 0, 0},
    {SYS_prlimit64, 0, 1, 0, 0},
    {SYS_lseek, 4096, 0, 2, 0},
    {SYS_pread64, 4096, 0, 95, 0},
    {SYS_openat, (u32)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC, 0},
    {SYS_openat, (u32)AT_FDCWD, 0, O_WRONLY | O_APPEND | O_CLOEXEC, 0},
    {SYS_read, 3, 0, 511, 0},
    {SYS_close, 3, 0, 0, 0},
    {SYS_fcntl, 3, F_DUPFD_CLOEXEC, 4096, 0},
    {SYS_readlinkat, (u32)AT_FDCWD, 0, 0, 1023},
    {SYS_clock_gettime, 1, 0, 0, 0},
    {SYS_clock_gettime, 3, 0, 0, 0},
    {SYS_getrusage, 0, 0, 0, 0},
    {SYS_getpid, 0, 0, 0, 0},
    {SYS_getppid, 0, 0, 0, 0},
    {SYS_gettid, 0, 0, 0, 0},
    {SYS_tgkill, 1, 1, 0, 0},
    {SYS_kill, 1, 0, 0, 0},
    {SYS_futex, 0, 1, 1, 0},
    {SYS_sched_yield, 0, 0, 0, 0},
    {SYS_mmap, 0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS},
    {SYS_mmap, 0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED},
    {SYS_munmap, 0, 65536, 0, 0},
    {SYS_madvise, 0, 65536, MADV_WIPEONFORK, 0},
    {SYS_fallocate, 4096, 0, 0, 65536},
};

#define STEPS_MAX 100000

/* Classic BPF as the kernel runs it over struct seccomp_data; anything that the kernel would refuse allows, as then
 * there is no filter. */
static u32 verdict(const struct sock_filter *code, u32 n, const struct seccomp_data *d)
{
	u32 a = 0, x = 0, mem[BPF_MEMWORDS] = {0}, pc, steps;
	for (pc = steps = 0; pc < n && steps < STEPS_MAX; pc++, steps++) {
		const struct sock_filter *f = &code[pc];
		u32 k = f->k, operand = BPF_SRC(f->code) == BPF_X ? x : k;
		switch (BPF_CLASS(f->code)) {
		case BPF_LD:
			if (BPF_MODE(f->code) == BPF_ABS) {
				if (k > sizeof *d - 4 || k & 3)
					return SECCOMP_RET_ALLOW;
				__builtin_memcpy(&a, (const char *)d + k, 4);
			} else {
				a = BPF_MODE(f->code) == BPF_IMM ? k : BPF_MODE(f->code) == BPF_LEN ? (u32)sizeof *d : mem[k % BPF_MEMWORDS];
			}
			break;
		case BPF_LDX:
			x = BPF_MODE(f->code) == BPF_IMM ? k : BPF_MODE(f->code) == BPF_LEN ? (u32)sizeof *d : mem[k % BPF_MEMWORDS];
			break;
		case BPF_ST:
			mem[k % BPF_MEMWORDS] = a;
			break;
		case BPF_STX:
			mem[k % BPF_MEMWORDS] = x;
			break;
		case BPF_ALU:
			switch (BPF_OP(f->code)) {
			case BPF_ADD:
				a += operand;
				break;
			case BPF_SUB:
				a -= operand;
				break;
			case BPF_MUL:
				a *= operand;
				break;
			case BPF_DIV:
				if (!operand)
					return 0; /* the kernel ends the filter so */
				a /= operand;
				break;
			case BPF_OR:
				a |= operand;
				break;
			case BPF_AND:
				a &= operand;
				break;
			case BPF_XOR:
				a ^= operand;
				break;
			case BPF_LSH:
				a = operand < 32 ? a << operand : 0;
				break;
			case BPF_RSH:
				a = operand < 32 ? a >> operand : 0;
				break;
			case BPF_NEG:
				a = 0 - a;
				break;
			}
			break;
		case BPF_JMP:
			switch (BPF_OP(f->code)) {
			case BPF_JA:
				pc += k;
				break;
			case BPF_JEQ:
				pc += a == operand ? f->jt : f->jf;
				break;
			case BPF_JGT:
				pc += a > operand ? f->jt : f->jf;
				break;
			case BPF_JGE:
				pc += a >= operand ? f->jt : f->jf;
				break;
			case BPF_JSET:
				pc += a & operand ? f->jt : f->jf;
				break;
			}
			break;
		case BPF_RET:
			return BPF_RVAL(f->code) == BPF_A ? a : k;
		case BPF_MISC:
			if (BPF_MISCOP(f->code) == BPF_TAX)
				x = a;
			else
				a = x;
			break;
		}
	}
	return SECCOMP_RET_ALLOW;
}

static int tolerates(const struct sock_fprog *p)
{
	struct seccomp_data d;
	u32 i;
	for (i = 0; i < sizeof needs / sizeof *needs; i++) {
		u32 r;
		shim_zero(&d, sizeof d);
		d.nr = (int)needs[i].nr;
		d.arch = SHIM_AUDIT_ARCH;
		d.instruction_pointer = (u64)CALLER();
		d.args[0] = needs[i].a0;
		d.args[1] = needs[i].a1;
		d.args[2] = needs[i].a2;
		d.args[3] = needs[i].a3;
		r = verdict(p->filter, p->len, &d) & SECCOMP_RET_ACTION_FULL;
		if (r != SECCOMP_RET_ALLOW && r != SECCOMP_RET_LOG && r != SECCOMP_RET_ERRNO)
			return 0;
	}
	return 1;
}

/* The rings go out and the process is recorded no further. */
static void over(void)
{
	struct thr *t = shim_self.thr;
	u8 b[16], *q;
	if (shim_run.state != RUN_ON || shim_self.off)
		return;
	if (t && t->begun && !shim_in_vfork(t)) {
		q = put_v(b, PROPHET_TagUnseen);
		q = put_v(q, PROPHET_UnseenSandbox);
		q = put_v(q, 0);
		q = put_v(q, 0);
		shim_record(t, b, (u32)(q - b));
		shim_exit_flush(PROPHET_ExitQuick, 0);
	}
	shim_record_no_more();
}

/* Each stamp would be a fault from now on. */
static void blind(void)
{
	over();
	shim_run.blind = 1;
}

u32 shim_sandboxed;

void shim_sandbox(const void *program)
{
	const struct sock_fprog *p = program;
	shim_sandboxed = 1;
	if (!p)
		blind(); /* the strict mode takes the time stamp counter away, too */
	else if (shim_readable(p, sizeof *p) && shim_readable(p->filter, p->len * sizeof *p->filter) && !tolerates(p))
		over();
}

void shim_sandbox_prctl(long option, long a, const void *b)
{
	if (option == PR_SET_SECCOMP && (a == SECCOMP_MODE_STRICT || a == SECCOMP_MODE_FILTER))
		shim_sandbox(a == SECCOMP_MODE_STRICT ? 0 : b);
	else if (option == PR_SET_TSC && a == PR_TSC_SIGSEGV)
		blind();
}

int shim_sandbox_blind(void)
{
	int tsc = 0;
	return sys(SYS_prctl, PR_GET_TSC, &tsc, 0, 0, 0) == 0 && tsc == PR_TSC_SIGSEGV;
}

/* See stamps.h. */
#include "stamps.h"
#include "insn.h"
#if SHIM_STAMPS
#include "replay.h"
#include "wrap.h"
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define NEAR 24 /* bytes behind the instruction that are looked at */
#define STUB 64
#define STUB_SITE 48 /* where a stub keeps what it stands for, and whom it calls */
#define STUB_THUNK 56
#define ROOM 65536 /* of stubs, for what is loaded together */
#define MODULES 1024
#define LIBRARIES 0x600000000000 /* lie above, programs below */

struct stamp {
	u64 now, core;
};

HIDDEN struct stamp shim_stamp(void *pc, u64 cored);
extern const char shim_stamp_thunk[] HIDDEN, shim_stamp_core_thunk[] HIDDEN, __ehdr_start[] HIDDEN;

/* A stub calls one of these in place of the instruction, the second for rdtscp, which has the core's number in ecx: what that leaves as it is stays so, the flags, too. Our own code is
 * compiled for processors that have no wider registers than these, so that it does not touch the rest of them. */
__asm__(".pushsection .text\n"
	".macro STAMP name, core\n"
	".type \\name, @function\n"
	"\\name:\n"
	"pushfq\n push %rcx\n push %rsi\n push %rdi\n push %r8\n push %r9\n push %r10\n push %r11\n push %rbx\n push %rbp\n"
	"mov %rsp, %rbp\n"
	"mov 80(%rbp), %rdi\n" /* the stub, 11 bytes on */
	"mov 37(%rdi), %rdi\n"
	"sub $256, %rsp\n and $-16, %rsp\n cld\n"
	".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n movaps %xmm\\n, 16 * \\n(%rsp)\n .endr\n"
	"mov $\\core, %esi\n call shim_stamp\n"
	".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n movaps 16 * \\n(%rsp), %xmm\\n\n .endr\n"
	".if \\core\n mov %rdx, 64(%rbp)\n .endif\n" /* where rcx lies */
	"mov %rax, %rdx\n shr $32, %rdx\n mov %eax, %eax\n"
	"mov %rbp, %rsp\n"
	"pop %rbp\n pop %rbx\n pop %r11\n pop %r10\n pop %r9\n pop %r8\n pop %rdi\n pop %rsi\n pop %rcx\n popfq\n ret\n"
	".size \\name, . - \\name\n"
	".endm\n"
	"STAMP shim_stamp_thunk, 0\n"
	"STAMP shim_stamp_core_thunk, 1\n"
	".popsection\n");

static struct stamp stamp(u64 cored)
{
	struct stamp s = {0, 0};
	unsigned core = 0;
	s.now = cored ? __builtin_ia32_rdtscp(&core) : shim_ticks();
	s.core = core;
	return s;
}

struct stamp shim_stamp(void *pc, u64 cored)
{
	struct ev e;
	const struct expect *x;
	struct stamp s;
	if (!shim_begin(&e, CALL_rdtsc, CLASS_time, pc))
		return stamp(cored);
	x = shim_re_of(CALL_rdtsc);
	if (x) {
		s.now = (u64)x->ret;
		s.core = x->f1;
	} else {
		s = stamp(cored);
	}
	shim_end(&e, WRAP_ONCE);
	e.ret = (i64)s.now;
	e.f1 = s.core;
	shim_done(&e);
	return s;
}

/* The length of an instruction that means the same wherever it stands; 0: it does not, or is not known. */
static u32 movable(const u8 *p)
{
	u32 i = (p[0] & 0xf0) == 0x40, more, n;
	u8 op = p[i], m;
	switch (op) {
	case 0x01:
	case 0x03:
	case 0x09:
	case 0x0b:
	case 0x21:
	case 0x23:
	case 0x29:
	case 0x2b:
	case 0x31:
	case 0x33:
	case 0x39:
	case 0x3b:
	case 0x63:
	case 0x85:
	case 0x89:
	case 0x8b:
	case 0x8d:
		more = 0;
		break;
	case 0x83:
	case 0xc1:
		more = 1;
		break;
	case 0x81:
	case 0xc7:
		more = 4;
		break;
	case 0x05:
	case 0x0d:
	case 0x25:
	case 0x2d:
	case 0x35:
	case 0x3d:
		return i + 5;
	case 0xb8:
	case 0xb9:
	case 0xba:
	case 0xbb:
	case 0xbc:
	case 0xbd:
	case 0xbe:
	case 0xbf:
		return i && p[0] & 8 ? 0 : i + 5;
	case 0x0f:
		if (p[i + 1] != 0xb6 && p[i + 1] != 0xb7 && p[i + 1] != 0xaf)
			return 0;
		i++;
		more = 0;
		break;
	default:
		return 0;
	}
	m = p[i + 1];
	n = i + 2 + more;
	if (m >> 6 == 3)
		return n;
	if ((m & 7) == 4)
		n += m >> 6 == 0 && (p[i + 2] & 7) == 5 ? 5 : 1;
	else if (m >> 6 == 0 && (m & 7) == 5)
		return 0; /* relative to where it stands */
	return n + (m >> 6 == 1 ? 1 : m >> 6 == 2 ? 4 : 0);
}

/* Whether both halves are taken elsewhere at once, or a register is shifted up by 32 bits soon: without either these two
 * bytes may be something else. */
static int joined(const u8 *p)
{
	u32 i, at = 0, from = 0;
	for (i = 0; i < 2; i++) {
		at += (p[at] & 0xfe) == 0x40;
		if (p[at] != 0x89 || p[at + 1] >> 6 != 3)
			break;
		from |= 1u << (p[at + 1] >> 3 & 7);
		at += 2;
	}
	if (i == 2 && from == 5) /* eax and edx */
		return 1;
	for (i = 0; i + 4 <= 16; i++)
		if ((p[i] == 0x48 || p[i] == 0x49) && p[i + 1] == 0xc1 && (p[i + 2] & 0xf8) == 0xe0 && p[i + 3] == 32)
			return 1;
	return 0;
}

/* Where a module's tables for unwinding say that functions are: a sorted table of places from its header on, as linkers write it. */
struct functions {
	const u8 *head, *low, *high;
};

static u32 word_at(const u8 *p)
{
	u32 v;
	__builtin_memcpy(&v, p, 4);
	return v;
}

/* The function that covers p; 0: none does. */
static int function(const struct functions *f, const u8 *p, const u8 **start, const u8 **end)
{
	const u8 *table = f->head + 12, *fde;
	u32 count, low = 0, high;
	if (!f->head || f->head[0] != 1 || f->head[1] != 0x1b || f->head[2] != 0x03 || f->head[3] != 0x3b) /* four bytes each */
		return 0;
	count = word_at(f->head + 8);
	if (!count || count > (u64)(f->high - table) / 8)
		return 0;
	for (high = count; high - low > 1;) {
		u32 mid = low + (high - low) / 2;
		if (f->head + (int)word_at(table + mid * 8) <= p)
			low = mid;
		else
			high = mid;
	}
	*start = f->head + (int)word_at(table + low * 8);
	fde = f->head + (int)word_at(table + low * 8 + 4);
	if (*start > p || fde < f->low || fde + 16 > f->high || fde + 8 + (int)word_at(fde + 8) != *start)
		return 0;
	*end = *start + word_at(fde + 12);
	return p < *end && *start >= f->low && *end <= f->high;
}

/* Whether an instruction begins at p, in a function of which each is known from its start on, and none leads to where the n
 * bytes from p on are to be replaced. One that may lead anywhere leaves that open. */
static int begins(const struct functions *f, const u8 *p, u32 n)
{
	const u8 *at, *end;
	int there = 0;
	if (!function(f, p, &at, &end))
		return 0;
	while (at < end) {
		struct insn in;
		const u8 *op, *to = 0, *next;
		if (f->high - at < 32 || !shim_insn(at, &in))
			return 0;
		there |= at == p;
		op = at + in.at;
		next = at + in.len;
		if (in.two ? (op[0] & 0xf0) == 0x80 && op[-1] == 0x0f : op[0] == 0xe8 || op[0] == 0xe9)
			to = next + (int)word_at(next - 4);
		else if (!in.two && ((op[0] & 0xf0) == 0x70 || (op[0] & 0xfc) == 0xe0 || op[0] == 0xeb))
			to = next + (signed char)next[-1];
		else if (!in.two && op[0] == 0xff && (op[1] >> 3 & 6) == 4)
			return 0;
		if (to > p && to < p + n)
			return 0;
		at = next;
	}
	return there;
}

static int reaches(const void *from, const void *to)
{
	i64 d = (i64)((u64)to - (u64)from);
	return d > -0x7ff00000 && d < 0x7ff00000;
}

static u8 *put_rel(u8 *p, u8 op, const void *to)
{
	i64 d = (i64)((u64)to - (u64)(p + 5));
	int rel = (int)d;
	*p = op;
	__builtin_memcpy(p + 1, &rel, 4);
	return p + 5;
}

static u8 *room, *room_end; /* of stubs; written while one thread loads libraries, which the dynamic linker sees to */

static int make_room(const u8 *near, u64 apart)
{
	long p;
	if (room && room_end - room >= STUB && reaches(near, room))
		return 1;
	p = sys(SYS_mmap, apart, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p < 0 && p > -4096)
		return 0;
	if (!reaches(near, (void *)p)) {
		sys(SYS_munmap, p, ROOM);
		return 0;
	}
	room = (u8 *)p;
	room_end = room + ROOM;
	return 1;
}

/* An instruction of len bytes, and n more behind it. 0: not here. */
static int replace(u8 *site, u32 len, u32 n, u64 apart)
{
	static const u8 enter[] = {0x48, 0x8d, 0x64, 0x24, 0x80, 0xff, 0x15}, leave[] = {0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0};
	const u64 page = (u64)site & ~4095ull, room_of = (((u64)site + len + n + 4095) & ~4095ull) - page, at = (u64)site;
	const u64 thunk = (u64)(len == 3 ? shim_stamp_core_thunk : shim_stamp_thunk);
	int rel = STUB_THUNK - 11;
	u8 *p;
	u32 i;
	if (!make_room(site, apart) || sys(SYS_mprotect, page, room_of, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		return 0;
	p = room;
	__builtin_memcpy(p, enter, sizeof enter);
	__builtin_memcpy(p + sizeof enter, &rel, 4);
	__builtin_memcpy(p + 11, leave, sizeof leave);
	for (i = 0; i < n; i++)
		p[19 + i] = site[len + i];
	put_rel(p + 19 + n, 0xe9, site + len + n);
	__builtin_memcpy(p + STUB_SITE, &at, 8);
	__builtin_memcpy(p + STUB_THUNK, &thunk, 8);
	room += STUB;
	put_rel(site, 0xe9, p);
	for (i = 5; i < len + n; i++)
		site[i] = 0x90;
	sys(SYS_mprotect, page, room_of, PROT_READ | PROT_EXEC);
	return 1;
}

static void look_through(u8 *p, u8 *end, u64 apart, const struct functions *f)
{
	for (; end - p > NEAR + 3; p++) {
		u32 n = 0, k, len = p[0] != 0x0f ? 0 : p[1] == 0x31 ? 2 : p[1] == 0x01 && p[2] == 0xf9 ? 3 : 0;
		if (!len)
			continue;
		while (n < 5 - len && (k = movable(p + len + n)) != 0)
			n += k;
		if (n >= 5 - len && n <= 16 && (joined(p + len) || begins(f, p, len + n)) && !replace(p, len, n, apart))
			return;
	}
}

static void module(const ElfW(Phdr) * ph, u32 n, u64 bias)
{
	struct functions f = {0, (const u8 *)~0ull, 0};
	u64 low = ~0ull;
	u32 i;
	for (i = 0; i < n; i++) {
		const u8 *at = (const u8 *)(bias + ph[i].p_vaddr);
		if (ph[i].p_type == PT_LOAD && bias + ph[i].p_vaddr < low)
			low = bias + ph[i].p_vaddr;
		if (ph[i].p_type == PT_LOAD && !(ph[i].p_flags & PF_W)) {
			f.low = at < f.low ? at : f.low;
			f.high = at + ph[i].p_filesz > f.high ? at + ph[i].p_filesz : f.high;
		}
		if (ph[i].p_type == PT_GNU_EH_FRAME && ph[i].p_memsz > 12)
			f.head = at;
	}
	for (i = 0; i < n; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_flags & PF_X && !(ph[i].p_flags & PF_W))
			look_through((u8 *)(bias + ph[i].p_vaddr), (u8 *)(bias + ph[i].p_vaddr + ph[i].p_filesz), low > LIBRARIES ? 0 : (low & ~4095ull) - ROOM,
				     &f);
}

/* Those that are looked through stay so for as long as they are loaded. The C library and the dynamic linker tell
 * nobody what they read. */
static struct {
	const struct link_map *map;
	u64 bias;
	u32 here;
} known[MODULES];

static int passed(const struct link_map *m)
{
	const char *c, *base = m->l_name;
	for (c = m->l_name; *c; c++)
		if (*c == '/')
			base = c + 1;
	return m->l_addr == (u64)__ehdr_start || shim_starts(base, "ld-linux") || shim_starts(base, "libc.so.") || shim_starts(base, "linux-vdso");
}

static void modules(void)
{
	const struct link_map *m;
	u32 i, free;
	for (i = 0; i < MODULES; i++)
		known[i].here = 0;
	for (m = _r_debug.r_map; m; m = m->l_next) {
		const ElfW(Ehdr) *h = (const void *)m->l_addr;
		for (i = 0, free = MODULES; i < MODULES && !(known[i].map == m && known[i].bias == m->l_addr); i++)
			if (!known[i].map)
				free = i < free ? i : free;
		if (i < MODULES) {
			known[i].here = 1;
			continue;
		}
		if (free == MODULES)
			return;
		known[free].map = m;
		known[free].bias = m->l_addr;
		known[free].here = 1;
		if (m == _r_debug.r_map)
			module((const void *)getauxval(AT_PHDR), (u32)getauxval(AT_PHNUM), m->l_addr);
		else if (!passed(m) && shim_readable(h, sizeof *h) && __builtin_memcmp(h->e_ident, ELFMAG, SELFMAG) == 0)
			module((const void *)(m->l_addr + h->e_phoff), h->e_phnum, m->l_addr);
	}
	for (i = 0; i < MODULES; i++)
		if (!known[i].here)
			known[i].map = 0;
}

/* The dynamic linker calls an empty function when what is loaded has changed, for debuggers to stop there. */
static void loaded(void)
{
	if (_r_debug.r_state == RT_CONSISTENT)
		modules();
}

void shim_stamps_boot(void)
{
	u8 *at = (u8 *)_r_debug.r_brk, *to = (u8 *)loaded;
	u64 page = (u64)at & ~4095ull;
	if (!shim_ctl.serial || !at)
		return;
	modules();
	if (!reaches(at, to) || at[0] != 0xc3 || sys(SYS_mprotect, page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		return;
	put_rel(at, 0xe9, to);
	sys(SYS_mprotect, page, 8192, PROT_READ | PROT_EXEC);
}
#endif

/* One step up a stack: the call frame information that compilers leave in .eh_frame for exceptions, found through the
 * sorted table in .eh_frame_hdr; frame pointers where a place has none, as in code of Go, of just-in-time compilers
 * and of hand-written assembly.
 *
 * Rules: it may run anywhere an event may, so it takes no lock and allocates nothing. The loader's own lock-free
 * look-up (_dl_find_object) says in which module a pc lies; where the C library has none, the modules that the trace
 * knows do. The stack may be broken and a module may be gone: what lies on the stack is read within bounds and from
 * pages that the kernel says are there, tables within their module and likewise. What a table says of a place is
 * packed into 64 bits and kept, so that the tables are read once a call site; a kept rule that is stale, as another
 * module has come to lie there, makes a wrong frame, and no fault.
 *
 * Of DWARF's expressions three are known by their shape: the CFA in a PLT, and the CFA and the frame pointer's place in a
 * function that aligns its stack. Anything else loses the frame. Registers but the frame pointer are not followed.
 */
#include "cfi.h"
#include "modules.h"
#include "wrap.h"
#include <dlfcn.h>
#include <link.h>

/* A rule: how the caller's registers are found. */
enum { RULE_UNKNOWN, RULE_SP, RULE_FP, RULE_ALIGNED, RULE_PLT, RULE_SIGNAL, RULE_POINTER, RULE_LAST };

struct rule {
	u32 kind;
	i32 cfa; /* offset from the register; of PLT: the pc's low bits from which on 8 more are pushed */
	i32 fp, ra; /* where they are saved, from the CFA in words; 0: they are not */
	u32 fp_here; /* the frame pointer is saved where it points */
};

#define KEPT 1024

/* Two words that belong together if their xor is the pc: another thread may be storing. */
static struct {
	u64 check, rule;
} kept[KEPT];

static FAR u64 pack(const struct rule *r)
{
	return 1ull << 63 | (u64)r->fp_here << 62 | (u64)(r->ra & 0x3fff) << 48 | (u64)(r->fp & 0x3fff) << 34 | (u64)(r->cfa & 0x3fffffff) << 4 | r->kind;
}

static FAR i32 part(u64 v, u32 at, u32 bits)
{
	return (i32)((i64)(v << (64 - at - bits)) >> (64 - bits));
}

static FAR int fits(i64 v, u32 bits)
{
	return v >= -(1ll << (bits - 1)) && v < 1ll << (bits - 1);
}

/* Tables. */

struct module {
	u64 low, high, head; /* of the mapping; .eh_frame_hdr */
};

static FAR int module_of(u64 pc, struct module *m)
{
	static int (*find)(void *, struct dl_find_object *);
	static u32 looked;
	struct dl_find_object o;
	if (!looked) {
		find = (__typeof__(find))shim_find("_dl_find_object", 0);
		looked = 1;
	}
	if (find) {
		if (find((void *)pc, &o) != 0)
			return 0;
		m->low = (u64)o.dlfo_map_start;
		m->high = (u64)o.dlfo_map_end;
		m->head = (u64)o.dlfo_eh_frame;
		return 1;
	}
	return shim_module_frames(pc, &m->low, &m->high, &m->head);
}

/* A place in a module's tables. What cannot be read is zero and sets bad. */
struct table {
	u64 p, end;
	u64 low, high;
	u64 module; /* tells it from others */
	u64 page[2]; /* seen to be there */
	u32 bad;
};

/* Pages of tables that were seen to be there, so that most stacks ask the kernel for none: they stay as long as their module
 * does, and in which module a pc lies is asked each time. Each is kept mixed with its module. */
static u64 proven[256];

static FAR int there(struct table *t, u64 p, u64 n)
{
	u64 first = p >> 12, last = (p + n - 1) >> 12;
	if (p < t->low || p + n > t->high || p + n < p)
		return 0;
	for (; first <= last; first++) {
		u64 *seen = &proven[first * 0x9E3779B97F4A7C15ull >> 56], as = first ^ t->module;
		if (first == t->page[0] || first == t->page[1])
			continue;
		if (__atomic_load_n(seen, __ATOMIC_RELAXED) != as) {
			if (!shim_readable((void *)(first << 12), 1))
				return 0;
			__atomic_store_n(seen, as, __ATOMIC_RELAXED);
		}
		t->page[1] = t->page[0];
		t->page[0] = first;
	}
	return 1;
}

static FAR u64 get(struct table *t, u32 n)
{
	u64 v = 0;
	if (t->bad || t->p + n > t->end || !there(t, t->p, n)) {
		t->bad = 1;
		return 0;
	}
	shim_copy(&v, (void *)t->p, n);
	t->p += n;
	return v;
}

static FAR u64 get_uleb(struct table *t)
{
	u64 v = 0, b;
	u32 shift = 0;
	do {
		b = get(t, 1);
		if (shift < 64)
			v |= (b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !t->bad);
	return v;
}

static FAR i64 get_sleb(struct table *t)
{
	u64 v = 0, b;
	u32 shift = 0;
	do {
		b = get(t, 1);
		if (shift < 64)
			v |= (b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !t->bad);
	if (b & 0x40 && shift < 64)
		v |= ~0ull << shift;
	return (i64)v;
}

/* An encoded pointer; of those relative to anything, only to the place itself. */
static FAR u64 get_encoded(struct table *t, u32 enc)
{
	u64 at = t->p, v;
	if (enc == 0xff)
		return 0;
	switch (enc & 0xf) {
	case 0x0:
	case 0x4:
	case 0xc:
		v = get(t, 8);
		break;
	case 0x2:
		v = get(t, 2);
		break;
	case 0xa:
		v = (u64)(i64)(int16_t)get(t, 2);
		break;
	case 0x3:
		v = get(t, 4);
		break;
	case 0xb:
		v = (u64)(i64)(i32)get(t, 4);
		break;
	case 0x1:
		v = get_uleb(t);
		break;
	case 0x9:
		v = (u64)get_sleb(t);
		break;
	default:
		t->bad = 1;
		return 0;
	}
	if ((enc & 0x70) == 0x10)
		v += at;
	else if (enc & 0x70)
		t->bad = 1;
	return v;
}

/* Where the FDE may be that covers pc: the last of the sorted table that begins at or before it. */
static FAR u64 search(struct table *t, u64 head, u64 pc)
{
	u64 count, from, to, mid;
	u32 frame_enc, count_enc, table_enc;
	t->p = head;
	t->end = t->high;
	if (get(t, 1) != 1)
		return 0;
	frame_enc = (u32)get(t, 1);
	count_enc = (u32)get(t, 1);
	table_enc = (u32)get(t, 1);
	if (count_enc == 0xff || table_enc != 0x3b) /* offsets from the header, 4 bytes: what linkers write */
		return 0;
	get_encoded(t, frame_enc);
	count = get_encoded(t, count_enc);
	from = t->p;
	if (t->bad || !count || count > (t->high - from) / 8)
		return 0;
	for (to = count, mid = 0; to - mid > 1;) { /* [mid, to) */
		u64 m = mid + (to - mid) / 2;
		t->p = from + m * 8;
		if (head + (u64)(i64)(i32)get(t, 4) <= pc)
			mid = m;
		else
			to = m;
	}
	t->p = from + mid * 8;
	if (head + (u64)(i64)(i32)get(t, 4) > pc)
		return 0;
	mid = head + (u64)(i64)(i32)get(t, 4);
	return t->bad ? 0 : mid;
}

/* What the instructions are run on. Only what is followed is kept. */
enum { CFA_NONE, CFA_SP, CFA_FP, CFA_OTHER, CFA_ALIGNED, CFA_PLT };
enum { SAVED_NOT, SAVED_AT, SAVED_HERE, SAVED_UNDEFINED, SAVED_ODD };

struct row {
	i64 off;
	i64 fp, ra; /* bytes from the CFA */
	u8 cfa, fp_how, ra_how, pad;
};

#define ROWS 4 /* remembered at a time */

struct frame {
	u64 code_align, ra_reg;
	i64 data_align;
	u32 fde_enc, signal;
	u64 start, len; /* of the FDE */
	u64 init, init_end; /* instructions of the CIE */
};

static FAR void expression(struct table *t, struct row *r, int cfa)
{
	u64 n = get_uleb(t), end = t->p + n;
	u32 first;
	if (t->bad || n > t->end - t->p) {
		t->bad = 1;
		return;
	}
	if (cfa)
		r->cfa = CFA_OTHER;
	else
		r->fp_how = SAVED_ODD;
	first = n ? (u32)get(t, 1) : 0;
	if (first == 0x70 + SHIM_DWARF_FP) {
		i64 off = get_sleb(t);
		if (cfa && t->p + 1 == end && get(t, 1) == 0x06) { /* breg fp, off; deref */
			r->cfa = CFA_ALIGNED;
			r->off = off;
		} else if (!cfa && t->p == end && off == 0) {
			r->fp_how = SAVED_HERE;
		}
	} else if (cfa && first == 0x70 + SHIM_DWARF_SP && n == 11) { /* sp + 8 + ((pc & 15) >= lit) * 8 */
		static const u8 plt[10] = {0x08, 0x80, 0x00, 0x3f, 0x1a, 0, 0x2a, 0x33, 0x24, 0x22};
		u32 i, same = 1, lit = 0;
		for (i = 0; i < 10; i++) {
			u32 b = (u32)get(t, 1);
			if (i == 5)
				lit = b;
			else
				same &= b == plt[i];
		}
		if (same && lit >= 0x30 && lit <= 0x4f) {
			r->cfa = CFA_PLT;
			r->off = lit - 0x30;
		}
	}
	t->p = end;
}

static FAR void saved(struct row *r, const struct frame *f, u64 reg, u32 how, i64 at)
{
	if (reg == SHIM_DWARF_FP) {
		r->fp_how = (u8)how;
		r->fp = at;
	} else if (reg == f->ra_reg) {
		r->ra_how = (u8)how;
		r->ra = at;
	}
}

static FAR void restore(struct row *r, const struct row *init, const struct frame *f, u64 reg)
{
	if (reg == SHIM_DWARF_FP) {
		r->fp_how = init->fp_how;
		r->fp = init->fp;
	} else if (reg == f->ra_reg) {
		r->ra_how = init->ra_how;
		r->ra = init->ra;
	}
}

static FAR void cfa_is(struct row *r, u64 reg)
{
	r->cfa = reg == SHIM_DWARF_SP ? CFA_SP : reg == SHIM_DWARF_FP ? CFA_FP : CFA_OTHER;
}

/* Runs instructions up to what holds at pc. */
static FAR void run(struct table *t, const struct frame *f, u64 end, u64 pc, struct row *r, const struct row *init)
{
	struct row stack[ROWS];
	u64 at = f->start, reg;
	u32 depth = 0;
	t->end = end;
	while (t->p < end && !t->bad) {
		u32 op = (u32)get(t, 1), low = op & 0x3f;
		switch (op & 0xc0) {
		case 0x40: /* advance_loc */
			at += low * f->code_align;
			if (at > pc)
				return;
			continue;
		case 0x80: /* offset */
			saved(r, f, low, SAVED_AT, (i64)get_uleb(t) * f->data_align);
			continue;
		case 0xc0: /* restore */
			restore(r, init, f, low);
			continue;
		}
		switch (op) {
		case 0x00: /* nop */
			continue;
		case 0x01: /* set_loc */
			at = get_encoded(t, f->fde_enc);
			break;
		case 0x02: /* advance_loc1, 2, 4 */
			at += get(t, 1) * f->code_align;
			break;
		case 0x03:
			at += get(t, 2) * f->code_align;
			break;
		case 0x04:
			at += get(t, 4) * f->code_align;
			break;
		case 0x05: /* offset_extended */
			reg = get_uleb(t);
			saved(r, f, reg, SAVED_AT, (i64)get_uleb(t) * f->data_align);
			continue;
		case 0x06: /* restore_extended */
			restore(r, init, f, get_uleb(t));
			continue;
		case 0x07: /* undefined */
			saved(r, f, get_uleb(t), SAVED_UNDEFINED, 0);
			continue;
		case 0x08: /* same_value */
			saved(r, f, get_uleb(t), SAVED_NOT, 0);
			continue;
		case 0x09: /* register */
			reg = get_uleb(t);
			get_uleb(t);
			saved(r, f, reg, SAVED_ODD, 0);
			continue;
		case 0x0a: /* remember_state */
			if (depth == ROWS)
				t->bad = 1;
			else
				stack[depth++] = *r;
			continue;
		case 0x0b: /* restore_state */
			if (!depth)
				t->bad = 1;
			else
				*r = stack[--depth];
			continue;
		case 0x0c: /* def_cfa */
			cfa_is(r, get_uleb(t));
			r->off = (i64)get_uleb(t);
			continue;
		case 0x0d: /* def_cfa_register */
			cfa_is(r, get_uleb(t));
			continue;
		case 0x0e: /* def_cfa_offset */
			r->off = (i64)get_uleb(t);
			continue;
		case 0x0f: /* def_cfa_expression */
			expression(t, r, 1);
			continue;
		case 0x10: /* expression */
		case 0x16: /* val_expression */
			reg = get_uleb(t);
			if (reg == SHIM_DWARF_FP && op == 0x10) {
				expression(t, r, 0);
			} else {
				u64 n = get_uleb(t);
				if (n > t->end - t->p)
					t->bad = 1;
				else
					t->p += n;
				saved(r, f, reg, SAVED_ODD, 0);
			}
			continue;
		case 0x11: /* offset_extended_sf */
			reg = get_uleb(t);
			saved(r, f, reg, SAVED_AT, get_sleb(t) * f->data_align);
			continue;
		case 0x12: /* def_cfa_sf */
			cfa_is(r, get_uleb(t));
			r->off = get_sleb(t) * f->data_align;
			continue;
		case 0x13: /* def_cfa_offset_sf */
			r->off = get_sleb(t) * f->data_align;
			continue;
		case 0x14: /* val_offset, val_offset_sf */
		case 0x15:
			reg = get_uleb(t);
			get_uleb(t);
			saved(r, f, reg, SAVED_ODD, 0);
			continue;
		case 0x2d: /* arm64: the return address is signed from here on, or no more */
			continue;
		case 0x2e: /* args_size */
			get_uleb(t);
			continue;
		default:
			t->bad = 1;
			return;
		}
		if (at > pc)
			return;
	}
}

static FAR int parse_cie(struct table *t, u64 cie, struct frame *f)
{
	u64 len, data;
	char aug[8];
	u32 version, i;
	t->p = cie;
	t->end = t->high;
	len = get(t, 4);
	if (t->bad || len < 8 || len > t->high - t->p)
		return 0;
	t->end = t->p + len;
	f->init_end = t->end;
	if (get(t, 4) != 0)
		return 0;
	version = (u32)get(t, 1);
	if (version != 1 && version != 3)
		return 0;
	for (i = 0; i < sizeof aug; i++)
		if (!(aug[i] = (char)get(t, 1)))
			break;
	if (i == sizeof aug || t->bad)
		return 0;
	f->code_align = get_uleb(t);
	f->data_align = get_sleb(t);
	f->ra_reg = version == 1 ? get(t, 1) : get_uleb(t);
	f->fde_enc = 0;
	f->signal = 0;
	if (aug[0] == 'z') {
		u64 n = get_uleb(t);
		data = t->p + n;
		if (n > t->end - t->p)
			return 0;
		for (i = 1; aug[i]; i++)
			switch (aug[i]) {
			case 'R':
				f->fde_enc = (u32)get(t, 1);
				break;
			case 'P':
				version = (u32)get(t, 1);
				get_encoded(t, version & 0x8f); /* only its length counts */
				break;
			case 'L':
				get(t, 1);
				break;
			case 'S':
				f->signal = 1;
				break;
			case 'B': /* arm64: signed with the other key */
				break;
			default:
				return 0;
			}
		t->p = data;
	} else if (aug[0]) {
		return 0;
	}
	f->init = t->p;
	return !t->bad;
}

/* The rule at pc by the module's tables; RULE_POINTER where they do not cover it. */
static FAR void by_table(const struct module *m, u64 pc, struct rule *rule)
{
	struct table t;
	struct frame f;
	struct row row, init;
	u64 fde, len, end, cie;
	shim_zero(&t, sizeof t);
	t.low = m->low;
	t.high = m->high;
	t.module = (m->head ^ m->low << 20 ^ m->high << 40) * 0x9E3779B97F4A7C15ull | 1ull << 63; /* no page has that bit */
	rule->kind = RULE_POINTER;
	if (!m->head || !(fde = search(&t, m->head, pc)))
		return;
	t.p = fde;
	t.end = t.high;
	len = get(&t, 4);
	if (t.bad || len < 8 || len > t.high - t.p)
		return;
	end = t.p + len;
	cie = t.p - get(&t, 4);
	fde = t.p;
	if (!parse_cie(&t, cie, &f))
		return;
	t.p = fde;
	t.end = end;
	f.start = get_encoded(&t, f.fde_enc);
	f.len = get_encoded(&t, f.fde_enc & 0xf);
	if (t.bad || pc < f.start || pc - f.start >= f.len)
		return;
	rule->kind = RULE_UNKNOWN;
	if (f.signal) {
		rule->kind = RULE_SIGNAL;
		return;
	}
	len = get_uleb(&t); /* augmentation data; all of ours have it */
	if (len > end - t.p)
		return;
	fde = t.p + len;
	shim_zero(&row, sizeof row);
	t.p = f.init;
	run(&t, &f, f.init_end, ~0ull, &row, &row);
	init = row;
	t.p = fde;
	run(&t, &f, end, pc, &row, &init);
	if (t.bad)
		return;
	if (row.ra_how == SAVED_UNDEFINED) {
		rule->kind = RULE_LAST;
		return;
	}
	if (row.ra_how == SAVED_ODD || row.fp_how == SAVED_ODD || (row.ra_how == SAVED_AT && (row.ra & 7)) || (row.fp_how == SAVED_AT && (row.fp & 7)))
		return;
	if (!fits(row.off, 30) || !fits(row.fp / 8, 14) || !fits(row.ra / 8, 14))
		return;
	rule->cfa = (i32)row.off;
	rule->fp = row.fp_how == SAVED_AT ? (i32)(row.fp / 8) : 0;
	rule->fp_here = row.fp_how == SAVED_HERE;
	rule->ra = row.ra_how == SAVED_AT ? (i32)(row.ra / 8) : 0;
	rule->kind = row.cfa == CFA_SP	      ? RULE_SP
		     : row.cfa == CFA_FP      ? RULE_FP
		     : row.cfa == CFA_ALIGNED ? RULE_ALIGNED
		     : row.cfa == CFA_PLT     ? RULE_PLT
					      : RULE_UNKNOWN;
}

/* pc is in the instruction that the frame stands at, ret where it goes on: for the return from a handler they lie in two
 * functions. */
static FAR void rule_at(u64 pc, u64 ret, struct rule *rule)
{
	u64 h = pc * 0x9E3779B97F4A7C15ull >> 54, v = __atomic_load_n(&kept[h].rule, __ATOMIC_RELAXED);
	struct module m;
	if ((__atomic_load_n(&kept[h].check, __ATOMIC_RELAXED) ^ v) == pc && v) {
		rule->kind = (u32)v & 0xf;
		rule->cfa = part(v, 4, 30);
		rule->fp = part(v, 34, 14);
		rule->ra = part(v, 48, 14);
		rule->fp_here = (u32)(v >> 62 & 1);
		return;
	}
	shim_zero(rule, sizeof *rule);
	rule->kind = RULE_POINTER;
	v = (u64)module_of(pc, &m);
	if (v)
		by_table(&m, pc, rule);
	if (rule->kind == RULE_POINTER && shim_readable((void *)ret, 16) && SHIM_RETURNS_FROM_SIGNAL(ret))
		rule->kind = RULE_SIGNAL;
	if (!v)
		return; /* what lies there comes and goes */
	v = pack(rule);
	__atomic_store_n(&kept[h].rule, v, __ATOMIC_RELAXED);
	__atomic_store_n(&kept[h].check, v ^ pc, __ATOMIC_RELAXED);
}

FAR void shim_cfi_forget(void)
{
	u32 i;
	for (i = 0; i < KEPT; i++)
		__atomic_store_n(&kept[i].rule, 0, __ATOMIC_RELAXED);
	for (i = 0; i < sizeof proven / sizeof *proven; i++)
		__atomic_store_n(&proven[i], 0, __ATOMIC_RELAXED);
}

/* Stacks. */

#define STACK_REACH (8ul << 20) /* no frame lies further up */

static FAR void bounds(struct walk *w)
{
	u64 thread = (u64)__builtin_thread_pointer(); /* lies at the upper end of the stack of a thread that the C library made */
	w->low = w->sp;
	w->high = w->sp + STACK_REACH;
	if (thread > w->sp && thread < w->high)
		w->high = thread;
	if (w->high < w->sp)
		w->high = ~0xffful;
	w->page = 0;
}

static FAR int load(struct walk *w, u64 at, u64 *v)
{
	if (at & 7 || at < w->low || at + 8 > w->high)
		return 0;
	if (at >> 12 != w->page) {
		if (!shim_readable((void *)at, 8))
			return 0;
		w->page = at >> 12;
	}
	*v = *(const u64 *)at;
	return 1;
}

FAR void shim_walk_from(struct walk *w, u64 pc, u64 sp, u64 fp, u64 lr, u32 exact)
{
	w->pc = pc;
	w->sp = sp;
	w->fp = fp;
	w->lr = lr;
	w->leaf = exact;
	w->exact = exact;
	w->switched = 0;
	bounds(w);
}

/* A place that no table knows: the frame pointer leads to the caller's and the return address. */
static FAR int by_pointer(struct walk *w)
{
	u64 fp, ra;
	if (!w->fp)
		return WALK_END;
	if (w->fp < w->low || w->fp >= w->high) { /* another stack: a goroutine's that called C */
		if (w->switched || w->fp & 7)
			return WALK_LOST;
		w->switched = 1;
		w->low = w->fp;
		w->high = w->fp + STACK_REACH;
	}
	if (!load(w, w->fp, &fp) || !load(w, w->fp + 8, &ra))
		return WALK_LOST;
	if (!ra)
		return WALK_END;
	ra = SHIM_PLAIN_PC(ra);
	if (ra < 4096 || (fp && fp <= w->fp && fp >= w->low))
		return WALK_LOST;
	w->sp = w->low = w->fp + 16;
	w->fp = fp;
	w->pc = ra;
	return WALK_ON;
}

static FAR int by_signal(struct walk *w)
{
	u64 c = w->sp + SHIM_SIGNAL_CONTEXT, page;
	const ucontext_t *u = (const void *)c;
	if (c < w->low || c + sizeof *u > w->high)
		return WALK_LOST;
	for (page = c & ~4095ul; page < c + sizeof *u; page += 4096)
		if (!shim_readable((void *)(page < c ? c & ~7ul : page), 8))
			return WALK_LOST;
	shim_walk_from(w, SHIM_CONTEXT_PC(u), SHIM_CONTEXT_SP(u), SHIM_CONTEXT_FP(u), SHIM_CONTEXT_LR(u), 1);
	return w->pc < 4096 ? WALK_LOST : WALK_ON;
}

FAR int shim_walk(struct walk *w)
{
	struct rule r;
	u64 cfa, fp = w->fp, ra, lr = w->lr;
	u32 leaf = w->leaf;
	rule_at(w->exact ? w->pc : w->pc - 1, w->pc, &r);
	w->leaf = 0;
	w->exact = 0;
	switch (r.kind) {
	case RULE_SP:
		cfa = w->sp + (u64)(i64)r.cfa;
		break;
	case RULE_FP:
		cfa = w->fp + (u64)(i64)r.cfa;
		break;
	case RULE_ALIGNED:
		if (!load(w, w->fp + (u64)(i64)r.cfa, &cfa))
			return WALK_LOST;
		break;
	case RULE_PLT:
		cfa = w->sp + 8 + ((w->pc & 15) >= (u64)r.cfa ? 8 : 0);
		break;
	case RULE_SIGNAL:
		return by_signal(w);
	case RULE_POINTER:
		return by_pointer(w);
	case RULE_LAST:
		return WALK_END;
	default:
		return WALK_LOST;
	}
	if (r.ra) {
		if (!load(w, cfa + (u64)(i64)r.ra * 8, &ra))
			return WALK_LOST;
	} else if (leaf && lr) {
		ra = lr;
	} else {
		return WALK_LOST;
	}
	/* Below the stack pointer, at a function's end, it has been taken back already. */
	if (r.fp_here ? !load(w, w->fp, &fp) : r.fp && cfa + (u64)(i64)r.fp * 8 >= w->sp && !load(w, cfa + (u64)(i64)r.fp * 8, &fp))
		return WALK_LOST;
	ra = SHIM_PLAIN_PC(ra);
	if (cfa < w->sp || (cfa == w->sp && !leaf) || ra < 4096)
		return ra ? WALK_LOST : WALK_END;
	w->sp = w->low = cfa;
	w->fp = fp;
	w->pc = ra;
	return WALK_ON;
}

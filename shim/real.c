/* See real.h. */
#include "real.h"
#include "pause.h"
#include "minlibc.h"
#include <elf.h>
#include <errno.h>
#include <link.h>

void *shim_real_table[CALLS_MAX];

struct object {
	const ElfW(Sym) * sym;
	const char *str;
	const u32 *gnu; /* DT_GNU_HASH */
	const ElfW(Versym) * versym;
	const ElfW(Verdef) * verdef;
	u64 nverdef;
	ElfW(Addr) base;
};

static const void *at(const struct link_map *m, ElfW(Addr) v)
{
	/* glibc relocates these entries in place; other loaders, and the vDSO, leave offsets. */
	return (const void *)(v < m->l_addr ? v + m->l_addr : v);
}

static int describe(const struct link_map *m, struct object *o)
{
	const ElfW(Dyn) * d;
	shim_zero(o, sizeof *o);
	o->base = m->l_addr;
	if (!m->l_ld)
		return 0;
	for (d = m->l_ld; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB:
			o->sym = at(m, d->d_un.d_ptr);
			break;
		case DT_STRTAB:
			o->str = at(m, d->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			o->gnu = at(m, d->d_un.d_ptr);
			break;
		case DT_VERSYM:
			o->versym = at(m, d->d_un.d_ptr);
			break;
		case DT_VERDEF:
			o->verdef = at(m, d->d_un.d_ptr);
			break;
		case DT_VERDEFNUM:
			o->nverdef = d->d_un.d_val;
			break;
		}
	}
	return o->sym && o->str && o->gnu;
}

static const char *version_of(const struct object *o, u32 i)
{
	const u8 *p = (const u8 *)o->verdef;
	u64 n;
	u16 want = o->versym[i] & 0x7fff;
	for (n = 0; p && n < o->nverdef; n++) {
		const ElfW(Verdef) *v = (const void *)p;
		if ((v->vd_ndx & 0x7fff) == want)
			return o->str + ((const ElfW(Verdaux) *)(p + v->vd_aux))->vda_name;
		if (!v->vd_next)
			break;
		p += v->vd_next;
	}
	return "";
}

static void *look(const struct object *o, const char *name, u32 hash, const char *version)
{
	u32 nb = o->gnu[0], first = o->gnu[1], nbloom = o->gnu[2], shift = o->gnu[3], i;
	const u64 *bloom = (const u64 *)(o->gnu + 4);
	const u32 *bucket = (const u32 *)(bloom + nbloom), *chain = bucket + nb;
	u64 word;
	if (!nb || !nbloom)
		return 0;
	word = bloom[(hash / 64) % nbloom];
	if (!(word >> (hash % 64) & word >> ((hash >> shift) % 64) & 1))
		return 0;
	i = bucket[hash % nb];
	if (i < first)
		return 0;
	for (;; i++) {
		u32 h = chain[i - first];
		const ElfW(Sym) *s = o->sym + i;
		if ((h | 1) == (hash | 1) && s->st_shndx != SHN_UNDEF && shim_same(o->str + s->st_name, name)) {
			int type = ELF64_ST_TYPE(s->st_info), ok = 1;
			if (version && *version)
				ok = !o->versym || shim_same(version_of(o, i), version);
			else if (o->versym)
				ok = !(o->versym[i] & 0x8000); /* hidden: not the default version */
			if (ok && (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT || type == STT_NOTYPE)) {
				void *f = (void *)(o->base + s->st_value);
				if (type == STT_GNU_IFUNC)
					f = ((void *(*)(void))f)();
				return f;
			}
		}
		if (h & 1)
			return 0;
	}
}

/* What is imported stands before all that is hashed. */
int shim_imports(const char *name)
{
	const struct link_map *m;
	u32 i;
	for (m = _r_debug.r_map; m; m = m->l_next) {
		struct object o;
		if (shim_starts(m->l_name, "linux-vdso") || !describe(m, &o))
			continue;
		for (i = 1; i < o.gnu[1]; i++)
			if (o.sym[i].st_shndx == SHN_UNDEF && shim_same(o.str + o.sym[i].st_name, name))
				return 1;
	}
	return 0;
}

extern const char __ehdr_start[] HIDDEN;

static const struct link_map *last_at_start;

/* Before we are relocated _r_debug has no address here. The program's own dynamic section knows it by then. */
static COLD const struct link_map *maps_of_program(void)
{
	u64 aux[2], n, base = 0;
	const ElfW(Phdr) *ph = 0, *p;
	const ElfW(Dyn) * d;
	long fd = sys(SYS_openat, -100 /* AT_FDCWD */, "/proc/self/auxv", 02000000 /* O_RDONLY | O_CLOEXEC */, 0);
	if (fd < 0)
		return 0;
	for (n = 0; sys(SYS_read, fd, aux, sizeof aux) == sizeof aux && aux[0] != AT_NULL;) {
		if (aux[0] == AT_PHDR)
			ph = (const void *)aux[1];
		else if (aux[0] == AT_PHNUM)
			n = aux[1];
	}
	sys(SYS_close, fd);
	for (p = ph; ph && p < ph + n; p++)
		if (p->p_type == PT_PHDR)
			base = (u64)ph - p->p_vaddr;
	for (p = ph; ph && p < ph + n; p++)
		if (p->p_type == PT_DYNAMIC)
			for (d = (const void *)(base + p->p_vaddr); d->d_tag != DT_NULL; d++)
				if (d->d_tag == DT_DEBUG && d->d_un.d_ptr)
					return ((const struct r_debug *)d->d_un.d_ptr)->r_map;
	return 0;
}

static const struct link_map *maps(void)
{
	const struct r_debug *d = &_r_debug;
	__asm__("" : "+r"(d)); /* the compiler knows that it cannot be NULL */
	return likely(d != 0) ? d->r_map : maps_of_program();
}

void shim_scope_fix(void)
{
	const struct link_map *m;
	for (m = _r_debug.r_map; m; m = m->l_next)
		last_at_start = m;
}

/* Objects after us first, as RTLD_NEXT; then those before us, for when we were loaded by dlopen. What dlopen brought later is
 * not in the global scope: it counts only where late says so. */
static void *find(const char *name, const char *version, int late, const struct link_map **in)
{
	u32 hash = 5381;
	const char *c;
	const struct link_map *m, *us = 0, *all = maps();
	int round;
	for (c = name; *c; c++)
		hash = hash * 33 + (u8)*c;
	for (m = all; m; m = m->l_next)
		if (m->l_addr == (ElfW(Addr))__ehdr_start)
			us = m;
	for (round = 0; round < 2; round++)
		for (m = round || !us ? all : us->l_next; m && !(round && m == us); m = m->l_next) {
			struct object o;
			void *f;
			if (m != us && !shim_starts(m->l_name, "linux-vdso") && describe(m, &o) && (f = look(&o, name, hash, version))) {
				*in = m;
				return f;
			}
			if (m == last_at_start && !late)
				break;
		}
	return 0;
}

void *shim_find(const char *name, const char *version)
{
	const struct link_map *in;
	return find(name, version, 0, &in);
}

u8 shim_direct[CALLS_MAX];
static u32 cancels;

void shim_cancels(void)
{
	u32 i;
	__atomic_store_n(&cancels, 1, __ATOMIC_SEQ_CST);
	for (i = 0; i < CALLS_MAX; i++)
		__atomic_store_n(&shim_direct[i], 0, __ATOMIC_RELAXED);
}

static int is_file(const struct link_map *m, const char *name)
{
	const char *c = m->l_name, *base = c;
	for (; *c; c++)
		if (*c == '/')
			base = c + 1;
	return shim_starts(base, name);
}

/* Names and versions without a pointer: an IFUNC resolver of another library may call us before we are relocated. */
static const struct call_text {
#define CALL_NAME(id, name, version) char name_##id[sizeof name], version_##id[sizeof version];
#include "zcallnames.h"
#undef CALL_NAME
} call_text = {
#define CALL_NAME(id, name, version) name, version,
#include "zcallnames.h"
#undef CALL_NAME
};
static const struct {
	u16 name, version;
} call_name[CALLS_MAX] = {
#define CALL_NAME(id, name, version) [id] = {offsetof(struct call_text, name_##id), offsetof(struct call_text, version_##id)},
#include "zcallnames.h"
#undef CALL_NAME
};
_Static_assert(sizeof call_text < 65536, "offsets have 16 bits");

static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

void *shim_resolve_maybe(u32 call)
{
	const char *text = (const char *)&call_text;
	const struct link_map *in;
	void *f = find(text + call_name[call].name, text + call_name[call].version, 0, &in);
	if (f) {
		f = shim_virtual(call, f);
		__atomic_store_n(&shim_real_table[call], f, __ATOMIC_RELAXED);
		if (is_file(in, "libc.so.") && !__atomic_load_n(&cancels, __ATOMIC_SEQ_CST))
			__atomic_store_n(&shim_direct[call], 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&cancels, __ATOMIC_SEQ_CST))
			__atomic_store_n(&shim_direct[call], 0, __ATOMIC_RELAXED);
	}
	return f;
}

int shim_from(u32 call, const char *library)
{
	const char *text = (const char *)&call_text;
	const struct link_map *in;
	return !find(text + call_name[call].name, text + call_name[call].version, 0, &in) || is_file(in, library);
}

void *shim_lookup(u32 call)
{
	const char *text = (const char *)&call_text;
	const struct link_map *in;
	void *f = find(text + call_name[call].name, text + call_name[call].version, 0, &in);
	return f ? f : (void *)missing;
}

void *shim_lookup_late(u32 call)
{
	const char *text = (const char *)&call_text;
	const struct link_map *in;
	return find(text + call_name[call].name, text + call_name[call].version, 1, &in);
}

void *shim_resolve(u32 call)
{
	void *f = shim_resolve_maybe(call);
	/* Without it the program called a function that only we export here: its own libc lacks it, and so does it.
	 * The honest answer is the one an older kernel gives. */
	return f ? f : (void *)missing;
}

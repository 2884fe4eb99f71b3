/* Whether a program is sound: every index in it lies in its table. A program comes from another machine. */
#include <string.h>

#include "engine.h"

static const void *table(u64 size, u64 at, u64 n, u64 each)
{
	if (at & 7 || at > size || n > (size - at) / each)
		return NULL;
	return (const char *)run.head + at;
}

static bool known_object(u32 n, u16 kind)
{
	return n < run.head->objects && run.objects[n].kind == kind;
}

static const char *check_op(const struct progop *op)
{
	const struct prog *h = run.head;
	u16 kind = 0;
	switch (op->code) {
	case PROPHET_OpLock:
		if (op->flags & PROPHET_OpRole && (u64)op->a >= h->preds)
			return "a lock of an unknown predicate";
		/* fall through */
	case PROPHET_OpUnlock:
	case PROPHET_OpTrylock:
	case PROPHET_OpTimedlock:
		if (op->code != PROPHET_OpLock && op->flags & PROPHET_OpRole)
			if ((u64)op->a >= h->preds)
				return "a lock of an unknown predicate";
		kind = 1;
		break;
	case PROPHET_OpRdlock:
	case PROPHET_OpWrlock:
	case PROPHET_OpTryrdlock:
	case PROPHET_OpTrywrlock:
	case PROPHET_OpRwunlock:
		kind = 2;
		break;
	case PROPHET_OpSignal:
	case PROPHET_OpBroadcast:
	case PROPHET_OpRelease:
		kind = 3;
		break;
	case PROPHET_OpBarrier:
		kind = 4;
		break;
	case PROPHET_OpSemwait:
	case PROPHET_OpSemtry:
	case PROPHET_OpSemtimed:
	case PROPHET_OpSempost:
		kind = 5;
		break;
	case PROPHET_OpSpinlock:
	case PROPHET_OpSpintry:
	case PROPHET_OpSpinunlock:
		kind = 6;
		break;
	case PROPHET_OpWait:
		if ((u64)op->a >= h->preds)
			return "a wait for an unknown predicate";
		break;
	case PROPHET_OpEnd:
	case PROPHET_OpExit:
	case PROPHET_OpCreate:
	case PROPHET_OpJoin:
		if (op->obj >= h->threads)
			return "an unknown thread";
		break;
	case PROPHET_OpFork:
	case PROPHET_OpWaitpid:
		if (op->obj >= h->procs || run.procs[op->obj].main >= h->threads)
			return "an unknown process";
		break;
	case PROPHET_OpOpen:
		if ((u64)op->b >= h->files)
			return "an unknown file";
		break;
	case PROPHET_OpRename:
	case PROPHET_OpLink:
		if ((u64)op->a >= h->files)
			return "an unknown file";
		/* fall through */
	case PROPHET_OpStat:
	case PROPHET_OpAccess:
	case PROPHET_OpUnlink:
	case PROPHET_OpMkdir:
	case PROPHET_OpRmdir:
	case PROPHET_OpTruncateName:
		if (op->obj >= h->files)
			return "an unknown file";
		break;
	case PROPHET_OpAccept:
		if (op->obj >= h->listeners)
			return "an unknown listener";
		break;
	case PROPHET_OpGiveGram:
	case PROPHET_OpTakeGram:
		if (op->obj >= h->grams || op->a < 0 || op->a > 65535)
			return "an unknown port, or too long a datagram";
		break;
	case PROPHET_OpConnect:
		if ((u64)op->a >= h->listeners)
			return "an unknown listener";
		break;
	case PROPHET_OpCondwait:
		if (!known_object(op->obj, 3) || !known_object((u32)op->a, 1) || (u64)op->a >= h->objects || op + 1 == run.ops + h->ops ||
		    op[1].code != PROPHET_OpMore)
			return "a wait without its objects";
		run.strict = true;
		break;
	case PROPHET_OpCheck:
		run.strict = true;
		/* fall through */
	case PROPHET_OpTurn:
	case PROPHET_OpPlaced:
		if (op->obj >= h->objects)
			return "an unknown object";
		break;
	default:
		if (op->code >= PROPHET_OpLimit)
			return "an unknown operation";
	}
	if (kind && !known_object(op->obj, kind))
		return "an object of another kind";
	if (op->site > h->sites)
		return "an unknown context";
	return NULL;
}

static const char *check_pred(const struct progpred *p)
{
	const struct prog *h = run.head;
	if (!known_object(p->cond, 3) || !known_object(p->mutex, 1))
		return "a predicate without its objects";
	if (p->kind != PROPHET_PredKeyed && p->rows && (p->first > h->rows || p->rows > h->rows - p->first))
		return "a predicate outside of its table";
	for (u32 i = 0; (p->kind == PROPHET_PredQueue || p->kind == PROPHET_PredEnds) && i < p->rows; i++)
		if (run.rows[p->first + i].value >= h->ops)
			return "a predicate that leads out of its table";
	if (p->kind == PROPHET_PredKeyed && (p->first > h->keys || p->rows > h->keys - p->first))
		return "a predicate outside of its table";
	if (p->kind < PROPHET_PredQueue || p->kind > PROPHET_PredEnds || (p->kind != PROPHET_PredRows && !p->unit))
		return "a predicate of an unknown kind";
	if ((u64)p->roles + p->wait + p->last > h->bodies)
		return "a predicate with unknown sections";
	return NULL;
}

const char *check_program(struct run *r, u64 size)
{
	const struct prog *h = r->head;
	if (size < sizeof *h || h->magic != PROPHET_ProgMagic)
		return "not a compiled program";
	if (h->version != PROPHET_ProgVersion)
		return "compiled by another version of Prophet";
	if (h->size != size)
		return "cut short";
	if (!(r->procs = table(size, h->procsat, h->procs, sizeof *r->procs)) || !(r->threads = table(size, h->threadsat, h->threads, sizeof *r->threads)) ||
	    !(r->objects = table(size, h->objectsat, h->objects, sizeof *r->objects)) || !(r->preds = table(size, h->predsat, h->preds, sizeof *r->preds)) ||
	    !(r->files = table(size, h->filesat, h->files, sizeof *r->files)) || !(r->bodies = table(size, h->bodiesat, h->bodies, sizeof *r->bodies)) ||
	    !(r->ops = table(size, h->opsat, h->ops, sizeof *r->ops)) || !(r->jumps = table(size, h->jumpsat, h->jumps, sizeof *r->jumps)) ||
	    !(r->rows = table(size, h->rowsat, h->rows, sizeof *r->rows)))
		return "a table lies outside of it";
	if (!h->procs || !h->threads || h->listeners > 1024 || h->grams > 1024 || r->procs[0].main >= h->threads)
		return "it has nothing to run";
	for (u32 i = 0; i < h->threads; i++) {
		const struct progthread *t = &r->threads[i];
		if (!t->count || t->first > h->ops || t->count > h->ops - t->first || t->proc >= h->procs)
			return "a thread outside of its table";
		u16 last = r->ops[t->first + t->count - 1].code;
		if (last != PROPHET_OpEnd && last != PROPHET_OpExit)
			return "a thread without an end";
	}
	for (u32 i = 0; i < h->objects; i++)
		if (r->objects[i].kind > 6)
			return "an object of an unknown kind";
	for (u32 i = 0; i < h->preds; i++) {
		const char *bad = check_pred(&r->preds[i]);
		if (bad)
			return bad;
	}
	for (u32 i = 0; i < h->bodies; i++)
		if (r->bodies[i].first > h->ops || r->bodies[i].count > h->ops - r->bodies[i].first)
			return "a section outside of its table";
	for (u64 i = 0; i < h->jumps; i++) {
		const struct progjump *j = &r->jumps[i];
		if (j->site > h->sites || j->thread >= h->threads || j->at <= r->threads[j->thread].first ||
		    j->at - r->threads[j->thread].first >= r->threads[j->thread].count)
			return "a way on outside of its table";
	}
	for (u64 i = 0; i < h->ops; i++) {
		const struct progop *op = &r->ops[i];
		const char *bad = check_op(op);
		if (bad)
			return bad;
		if (op->flags & PROPHET_OpRole && ((u64)op->b > h->ops - i || op->b < 0))
			return "a section longer than its thread";
	}
	return NULL;
}

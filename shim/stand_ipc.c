/* Stand-ins for System V's objects and for POSIX message queues. The program sees the numbers that it saw then; the real
 * objects are the run's own. Operations on a set of semaphores have the order of the recording, and so has who receives from a
 * queue; messages are sent really, and what is received is the trace's.
 */
#include "channel.h"
#include "family.h"
#include "steps_sync.h"
#include "token.h"
#include <mqueue.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int now_of(u32 kind, int was)
{
	u64 now = was >= 0 ? shim_id_now(kind, (u64)was) : ~0ull;
	return now == ~0ull ? was : (int)now;
}

/* What was there before the run is made now; a key that another one has is left alone. */
#define GET(name, params, kind, again, anew)                \
	static int re_##name params                         \
	{                                                   \
		struct expect *x = shim_re_of(CALL_##name); \
		int r;                                      \
		if (x && x->ret < 0)                        \
			return (int)shim_re_ret(x);         \
		r = again;                                  \
		if (!x)                                     \
			return r;                           \
		if (r < 0 && !(flags & IPC_CREAT))          \
			r = anew;                           \
		if (r < 0)                                  \
			return r;                           \
		shim_id_is(kind, (u64)x->ret, (u64)r);      \
		return (int)x->ret;                         \
	}                                                   \
	STANDIN(name, re_##name)
GET(semget, (key_t key, int n, int flags), PROPHET_IDSem, TRUE(semget)(key, n, flags), TRUE(semget)(key, n > 0 ? n : 1, IPC_CREAT | 0600))
GET(msgget, (key_t key, int flags), PROPHET_IDMsg, TRUE(msgget)(key, flags), TRUE(msgget)(key, IPC_CREAT | 0600))
GET(shmget, (key_t key, size_t n, int flags), PROPHET_IDShm, TRUE(shmget)(key, n, flags), TRUE(shmget)(key, n > 0 ? n : 1, IPC_CREAT | 0600))

static u64 set_away(const void *object, const struct expect *x)
{
	return x->seq - 1 - __atomic_load_n(&((const struct object_entry *)object)->seq, __ATOMIC_ACQUIRE);
}

static int operate(struct expect *x, int id, struct sembuf *ops, size_t n)
{
	struct thr *t = shim_self.thr;
	struct object_entry *o;
	int r;
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	o = shim_object_ipc(t, PROPHET_ObjSem, (u64)id, "semset");
	if ((i64)set_away(o, x) >= 0) /* one that only adds has taken its place */
		shim_turn(t, x, x->obj, x->seq, set_away, o);
	do
		r = TRUE(semop)(now_of(PROPHET_IDSem, id), ops, n);
	while (r < 0 && errno == EINTR);
	return r;
}

static int re_semop(int id, struct sembuf *ops, size_t n)
{
	struct expect *x = shim_re_of(CALL_semop);
	return x ? operate(x, id, ops, n) : TRUE(semop)(id, ops, n);
}
STANDIN(semop, re_semop)

static int re_semtimedop(int id, struct sembuf *ops, size_t n, const struct timespec *limit)
{
	struct expect *x = shim_re_of(CALL_semtimedop);
	return x ? operate(x, id, ops, n) : TRUE(semtimedop)(id, ops, n, limit);
}
STANDIN(semtimedop, re_semtimedop)

static int re_semctl(int id, int num, int cmd, ...)
{
	struct expect *x = shim_re_of(CALL_semctl);
	va_list ap;
	void *arg;
	int r;
	va_start(ap, cmd);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!x)
		return TRUE(semctl)(id, num, cmd, arg);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	r = TRUE(semctl)(now_of(PROPHET_IDSem, id), num, cmd, arg);
	return r < 0 ? r : (int)x->ret; /* how many wait, and who was last, is as it was */
}
STANDIN(semctl, re_semctl)

#define MOMENT_MS 2
#define MOMENT_LEAST 10000 /* ns */
#define STRANGERS_MS 1000 /* after so long it comes from outside of the run */

/* Waits for so many ns for a message, or on q for one; -1: nothing tells that there is one. */
static void moment(struct thr *t, mqd_t q, u64 object, u64 ns)
{
	struct pollfd p = {q, POLLIN, 0};
	struct timespec ts = {0, (long)ns};
	shim_re_waits(t, object);
	if (__atomic_load_n(&shim_index->diverged, __ATOMIC_ACQUIRE))
		shim_re_stop(t, PROPHET_TurnWaits);
	sys(SYS_ppoll, &p, 1, &ts, 0, 0);
	shim_park();
	shim_re_goes_on(t);
}

static int re_msgsnd(int id, const void *m, size_t n, int flags)
{
	struct expect *x = shim_re_of(CALL_msgsnd);
	if (!x)
		return TRUE(msgsnd)(id, m, n, flags);
	flags = shim_self.thr->re->ex.serial ? flags | IPC_NOWAIT : flags & ~IPC_NOWAIT; /* room may be made by whose turn is later */
	while (x->ret == 0 && TRUE(msgsnd)(now_of(PROPHET_IDMsg, id), m, n, flags) < 0 && errno == EINTR && !shim_re_detached())
		;
	return (int)shim_re_ret(x);
}
STANDIN(msgsnd, re_msgsnd)

/* In the recorded order, a message that really comes: the sender has done what it did before. Under --serial the turns say so, and what is
 * received is the trace's, whatever there is. */
static ssize_t receive_sent(const struct expect *x, int id, void *m, size_t n, long type, int flags)
{
	static u32 strangers; /* send what is received here */
	struct thr *t = shim_self.thr;
	u64 waited, ns = MOMENT_LEAST;
	ssize_t r;
	if (x->seq && !t->re->alone) {
		struct object_entry *o = shim_object_ipc(t, PROPHET_ObjFd, (u64)id, "msgq");
		if (set_away(o, x))
			shim_turn(t, x, x->obj, x->seq, set_away, o);
	}
	for (waited = 0;; waited += ns) {
		r = TRUE(msgrcv)(now_of(PROPHET_IDMsg, id), m, n, type, flags | IPC_NOWAIT | (x->data ? MSG_NOERROR : 0));
		if (r >= 0 || (errno != ENOMSG && errno != EINTR))
			return r;
		if (shim_re_detached())
			return TRUE(msgrcv)(now_of(PROPHET_IDMsg, id), m, n, type, flags);
		if (x->data && (strangers || t->re->ex.serial || waited >= STRANGERS_MS * 1000000ull)) {
			strangers = 1;
			return 0;
		}
		if (ns < MOMENT_MS * 1000000)
			ns *= 2;
		moment(t, -1, x->obj, ns);
	}
}

static ssize_t re_msgrcv(int id, void *m, size_t n, long type, int flags)
{
	struct expect *x = shim_re_of(CALL_msgrcv);
	ssize_t r;
	if (!x)
		return TRUE(msgrcv)(id, m, n, type, flags);
	if (x->ret < 0)
		return (ssize_t)shim_re_ret(x);
	r = receive_sent(x, id, m, n, type, flags);
	if (!x->data)
		return r;
	feed_data(x, m, n + sizeof(long));
	return (ssize_t)x->ret;
}
STANDIN(msgrcv, re_msgrcv)

static int re_msgctl(int id, int cmd, struct msqid_ds *d)
{
	struct expect *x = shim_re_of(CALL_msgctl);
	int r;
	if (!x)
		return TRUE(msgctl)(id, cmd, d);
	if (x->ret < 0)
		return (int)shim_re_ret(x);
	r = TRUE(msgctl)(now_of(PROPHET_IDMsg, id), cmd, d);
	if (r == 0 && cmd == IPC_STAT)
		d->msg_qnum = x->f2;
	return r < 0 ? r : (int)x->ret;
}
STANDIN(msgctl, re_msgctl)

static void *re_shmat(int id, const void *addr, int flags)
{
	struct expect *x = shim_re_of(CALL_shmat);
	if (x && x->ret < 0) {
		errno = (int)-x->ret;
		return (void *)-1;
	}
	return TRUE(shmat)(x ? now_of(PROPHET_IDShm, id) : id, addr, flags);
}
STANDIN(shmat, re_shmat)

static int re_shmctl(int id, int cmd, struct shmid_ds *d)
{
	struct expect *x = shim_re_of(CALL_shmctl);
	if (x && x->ret < 0)
		return (int)shim_re_ret(x);
	return TRUE(shmctl)(x ? now_of(PROPHET_IDShm, id) : id, cmd, d);
}
STANDIN(shmctl, re_shmctl)

/* POSIX messages under --serial: one is for whose turn it is, as another may want what is sent only after that one has gone on. Who sends
 * needs no turn, but may need room that one makes whose turn is later: at its own turn it goes on without, and who then misses a message
 * does, too. What they are told is the trace's. */
#define MISSED_MS 100 /* where the one that was not sent was another queue's */

static int in_turns(const struct thr *t)
{
	return t->re->ex.serial && !(shim_index->flags & PROPHET_ReplayUnfed) && !shim_re_issued(t) && !shim_re_detached();
}

static int is_full(long r) /* or empty */
{
	return r == -ETIMEDOUT || r == -EAGAIN;
}

static const struct timespec at_once;

static int sends(const struct expect *x, mqd_t q, const char *m, size_t n, unsigned prio)
{
	struct thr *t = shim_self.thr;
	int on = 0;
	while (in_turns(t)) {
		long r = sys(SYS_mq_timedsend, q, m, n, prio, &at_once);
		if (r == 0)
			return 0;
		if (on && is_full(r)) {
			__atomic_add_fetch(&shim_index->unsent, 1, __ATOMIC_RELEASE);
			return 0;
		}
		if (!is_full(r) && r != -EINTR)
			break;
		shim_token_await(t, x);
		on = 1;
	}
	return TRUE(mq_send)(q, m, n, prio);
}

static int not_sent(void)
{
	u32 n = __atomic_load_n(&shim_index->unsent, __ATOMIC_ACQUIRE);
	while (n)
		if (__atomic_compare_exchange_n(&shim_index->unsent, &n, n - 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return 1;
	return 0;
}

static u64 queue_away(const void *queue, const struct expect *x)
{
	return x->f3 - 1 - __atomic_load_n(&((const struct object_entry *)queue)->seq, __ATOMIC_ACQUIRE);
}

/* Without --serial whoever is next takes what there is: who got his sooner then may have been what another's was sent after. */
static ssize_t receives_next(const struct expect *x, mqd_t q, char *m, size_t n, unsigned *prio)
{
	struct thr *t = shim_self.thr;
	struct object_entry *o = x->f3 && !t->re->alone ? shim_queue(q) : 0;
	ssize_t r;
	if (o && (i64)queue_away(o, x) > 0)
		shim_turn(t, x, PROPHET_ReplayQueue, x->f3, queue_away, o);
	while ((r = TRUE(mq_receive)(q, m, n, prio)) < 0 && (errno == EINTR || errno == EAGAIN) && !shim_re_detached())
		if (errno == EAGAIN)
			moment(t, q, shim_fd_known(q), MOMENT_MS * 1000000);
	if (o && r >= 0) {
		__atomic_store_n(&o->seq, x->f3, __ATOMIC_RELEASE);
		shim_turn_next(PROPHET_ReplayQueue, x->f3);
	}
	return r;
}

static ssize_t receives(const struct expect *x, mqd_t q, char *m, size_t n, unsigned *prio)
{
	struct thr *t = shim_self.thr;
	int ms, fed = !x->ret || x->data;
	if (!t->re->ex.serial)
		return receives_next(x, q, m, n, prio);
	if (fed && in_turns(t))
		shim_token_await(t, x);
	for (ms = 0; fed && in_turns(t); ms += MOMENT_MS) {
		long r = sys(SYS_mq_timedreceive, q, m, n, prio, &at_once);
		if (r >= 0 || (is_full(r) && (ms >= MISSED_MS || not_sent())))
			return 0;
		if (!is_full(r) && r != -EINTR)
			break;
		moment(t, q, shim_fd_known(q), MOMENT_MS * 1000000);
	}
	return TRUE(mq_receive)(q, m, n, prio);
}

#define MQ_SEND(name, params, args)                                   \
	static int re_##name params                                   \
	{                                                             \
		struct expect *x = shim_re_of(CALL_##name);           \
		if (x && x->ret < 0)                                  \
			return (int)shim_re_ret(x);                   \
		return x ? sends(x, q, m, n, prio) : TRUE(name) args; \
	}                                                             \
	STANDIN(name, re_##name)
MQ_SEND(mq_send, (mqd_t q, const char *m, size_t n, unsigned prio), (q, m, n, prio))
MQ_SEND(mq_timedsend, (mqd_t q, const char *m, size_t n, unsigned prio, const struct timespec *until), (q, m, n, prio, until))

#define MQ_RECEIVE(name, params, args)                                \
	static ssize_t re_##name params                               \
	{                                                             \
		struct expect *x = shim_re_of(CALL_##name);           \
		ssize_t r;                                            \
		if (x && x->ret < 0)                                  \
			return (ssize_t)shim_re_ret(x);               \
		r = x ? receives(x, q, m, n, prio) : TRUE(name) args; \
		if (x && r >= 0) {                                    \
			feed_data(x, m, n);                           \
			if (prio)                                     \
				*prio = (unsigned)x->f2;              \
			r = (ssize_t)x->ret;                          \
		}                                                     \
		return r;                                             \
	}                                                             \
	STANDIN(name, re_##name)
MQ_RECEIVE(mq_receive, (mqd_t q, char *m, size_t n, unsigned *prio), (q, m, n, prio))
MQ_RECEIVE(mq_timedreceive, (mqd_t q, char *m, size_t n, unsigned *prio, const struct timespec *until), (q, m, n, prio, until))

/* What a new program of the run needs in its environment, and whether it can be recorded at all.
 *
 * LD_PRELOAD begins with our library and keeps what else it named; PROPHET_TRACE and PROPHET_RUN say where the trace
 * is and who the parent is. All else stays as and where it was. Everything here is async-signal-safe and allocates
 * nothing: the caller gives the room, on its stack as a rule.
 */
#ifndef SHIM_HOOK_EXEC_H
#define SHIM_HOOK_EXEC_H

#include "wrap.h"

struct env_plan {
	char *const *from;
	const char *preload; /* the LD_PRELOAD that was there */
	u64 entries, bytes; /* bytes: room that shim_env_make needs; 0: the environment is passed on as it is */
	u32 lib, slot; /* lib: our library is named */
	u32 other, pad; /* the program asks for a trace of its own there */
};

/* What exec of a path (or descriptor) leads to. */
struct target {
	u32 unseen; /* UNSEEN_…, 0: it can be recorded */
	u32 lib; /* our library may be preloaded there */
	u32 absent; /* there is no such file */
	u32 pad;
};

HIDDEN void shim_env_plan(struct env_plan *p, char *const *envp, u32 lib, u32 slot);
HIDDEN char **shim_env_make(const struct env_plan *p, void *room);
HIDDEN void *shim_env_room(struct thr *t, u64 bytes, int vforked); /* for what does not fit a stack; NULL: none to be had */
HIDDEN void shim_env_room_back(struct thr *t, void *room, u64 bytes);
HIDDEN void shim_target(struct target *g, int dir, const char *path, int search, int fd);
HIDDEN void shim_unseen(struct thr *t, const struct target *g, const char *path);

#define ENV_ON_STACK 8192 /* bytes; the C library's own exec functions take as much for paths and arguments */

/* The repaired environment as ROOM's bytes; to be used where the caller's frame lasts until the call. */
#define SHIM_ENV(plan, t, vforked)                  \
	((plan)->bytes == 0 ? (char **)(plan)->from \
			    : shim_env_make(plan, (plan)->bytes <= ENV_ON_STACK ? __builtin_alloca((plan)->bytes) : shim_env_room(t, (plan)->bytes, vforked)))
#define SHIM_ENV_BACK(plan, t, env)                                                 \
	do {                                                                        \
		if ((plan)->bytes > ENV_ON_STACK && (env) != (char **)(plan)->from) \
			shim_env_room_back(t, env, (plan)->bytes);                  \
	} while (0)

#endif

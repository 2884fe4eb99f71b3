/* What run.c, ours.c, start.c and say.c share and nobody else needs. */
#ifndef SHIM_RUN_OWN_H
#define SHIM_RUN_OWN_H

#include "run.h"
#include <sys/types.h>

/* A descriptor of ours, and what it must still be. */
struct ours {
	int fd;
	u8 linked; /* it had a name; some file systems never say so */
	u8 gone; /* and had none any more, when it was last looked at */
	dev_t dev;
	ino_t ino; /* 0: there never was one */
};
extern struct ours shim_stream HIDDEN, shim_rings HIDDEN, shim_statm HIDDEN;

HIDDEN int shim_ours_keep(struct ours *o, int fd); /* under a number out of the program's way: fd is closed; 0 or -errno */
HIDDEN int shim_ours_same(struct ours *o);
HIDDEN void shim_ours_close(struct ours *o);
HIDDEN long shim_ours_use(struct ours *o, long (*again)(void), long (*f)(int fd, void *arg), void *arg); /* what f gives; signals are blocked */

#define SIGSET(sig) (1ull << ((sig)-1))

HIDDEN const char *shim_in_dir(struct text *t, char *buf, u32 cap, const char *name); /* a path in the trace */
HIDDEN int shim_stream_open(void);
HIDDEN void shim_rings_open(int create);
HIDDEN int shim_shm_name(u64 tag); /* where the run's files in shared memory are, shim_run.shm; 0 when that is ours and private */
HIDDEN const char *shim_shm_file(char *buf, u32 cap, const char *suffix); /* the one that ends so */
HIDDEN long shim_control_open(u64 tag); /* the file control of shim_run.dir, wherever it lies */
HIDDEN int shim_control_map(int fd);
HIDDEN void shim_say_where(void); /* remembers what standard error is at the start */

#endif

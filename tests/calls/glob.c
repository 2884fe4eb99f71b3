/* Names that match: found, added, with room before them, none. With an argument nothing is made here: TestOutsideChanged has other
 * files each time. */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const char *path, int error)
{
	printf("cannot look into %s\n", path);
	return 0;
}

static void show(const char *what, int r, glob_t *g, int offs)
{
	size_t i;
	printf("%s %d", what, r);
	for (i = 0; r == 0 && i < g->gl_pathc; i++)
		printf(" %s", g->gl_pathv[offs + i]);
	printf(" %d\n", r == 0 && g->gl_pathv[offs + g->gl_pathc] == 0);
}

int main(int argc, char **argv)
{
	glob_t g = {0};
	glob64_t g64 = {0};
	char name[300];
	int i;
	if (argc == 1) {
		mkdir("many", 0700);
		for (i = 0; i < 30; i++) {
			sprintf(name, "many/%0200d", i); /* more than an event has room for */
			close(creat(name, 0600));
		}
		close(creat("f1", 0600));
		close(creat("f2", 0600));
	}
	show("some", glob("f*", 0, 0, &g), &g, 0);
	globfree(&g);
	g.gl_offs = 2;
	show("offset", glob("f*", GLOB_DOOFFS, failed, &g), &g, 2);
	printf("%d\n", g.gl_pathv[0] == 0 && g.gl_pathv[1] == 0);
	show("added", glob("many/*", GLOB_DOOFFS | GLOB_APPEND, failed, &g), &g, 2);
	show("nothing added", glob("none*", GLOB_DOOFFS | GLOB_APPEND, failed, &g), &g, 2);
	globfree(&g);
	show("none", glob("none*", 0, failed, &g), &g, 0);
	show("itself", glob64("none*", GLOB_NOCHECK, failed, &g64), (glob_t *)&g64, 0);
	globfree64(&g64);
	show("unsorted or not", glob64("many/*", 0, failed, &g64), (glob_t *)&g64, 0);
	globfree64(&g64);
	return 0;
}

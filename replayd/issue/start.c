/* The engine runs before Go starts: no goroutine's thread and no handler of Go's is among what is issued. */
#include <stdlib.h>
#include <string.h>

int issue_main(int argc, char **argv);

__attribute__((constructor)) static void start(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "issue-engine"))
		exit(issue_main(argc - 1, argv + 1));
}

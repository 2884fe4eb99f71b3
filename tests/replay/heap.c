// Prints where its memory lies after the C library has looked for names. An answer from the trace alone left what the
// library allocates on its way to one for later, so all that came after lay elsewhere.
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static void ask(const char *node, const char *service, int flags)
{
	struct addrinfo hints = {.ai_flags = flags, .ai_socktype = SOCK_STREAM}, *list = 0;
	int r = getaddrinfo(node, service, &hints, &list);
	printf("%s %s: %d, list %p, memory %p\n", node ? node : "", service, r, (void *)list, malloc(100));
	if (r == 0)
		freeaddrinfo(list);
}

int main(void)
{
	struct ifaddrs *all;
	struct if_nameindex *names;
	struct hostent *h;
	ask("vm.invalid", "80", AI_NUMERICHOST);
	ask("127.0.0.1", "80", 0);
	ask("localhost", "80", AI_ADDRCONFIG);
	ask("localhost", "http", 0);
	ask("no.such.host.invalid", "80", 0);
	ask(0, "6000", AI_PASSIVE);
	h = gethostbyname("localhost");
	printf("%d, memory %p\n", h != 0, malloc(200));
	if (getifaddrs(&all) == 0) {
		printf("interfaces %p\n", (void *)all);
		freeifaddrs(all);
	}
	names = if_nameindex();
	printf("names %p\n", (void *)names);
	if_freenameindex(names);
	printf("user %s, memory %p %p\n", getpwuid(0)->pw_name, malloc(40), malloc(300));
	return 0;
}

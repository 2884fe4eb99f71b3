/* Names of hosts, services, protocols and interfaces. Nothing is asked of the network. */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int main(void)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *res = 0;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char host[64] = "", serv[64] = "", room[8192], name[IF_NAMESIZE];
	struct hostent h, *hp;
	struct servent s, *sp;
	struct protoent p, *pp;
	struct ifaddrs *list, *i;
	struct if_nameindex *ni;
	int err, lo = 0, n = 0;
	printf("numeric %d", getaddrinfo("127.0.0.1", "80", &hints, &res));
	printf(" %d\n", res && ((struct sockaddr_in *)res->ai_addr)->sin_port == htons(80));
	freeaddrinfo(res);
	printf("not numeric %d\n", getaddrinfo("no.such", 0, &hints, &res));
	printf("neither %d\n", getaddrinfo(0, 0, 0, &res));
	res = 0;
	printf("localhost %d\n", getaddrinfo("localhost", 0, 0, &res));
	if (res)
		freeaddrinfo(res);
	printf("nameinfo %d", getnameinfo((void *)&a, sizeof a, host, sizeof host, serv, sizeof serv, NI_NUMERICHOST | NI_NUMERICSERV));
	printf(" %s %s\n", host, serv);
	printf("nameinfo no room %d\n", getnameinfo((void *)&a, sizeof a, host, 2, 0, 0, NI_NUMERICHOST));
	hp = gethostbyname("127.0.0.1");
	printf("host %d\n", hp && hp->h_length == 4);
	hp = gethostbyname2("::1", AF_INET6);
	printf("host %d\n", hp && hp->h_length == 16);
	printf("host_r %d %d\n", gethostbyname_r("127.0.0.1", &h, room, sizeof room, &hp, &err), hp == &h);
	printf("host_r no room %d\n", gethostbyname_r("127.0.0.1", &h, room, 4, &hp, &err));
	printf("host2_r %d %d\n", gethostbyname2_r("::1", AF_INET6, &h, room, sizeof room, &hp, &err), hp == &h);
	hp = gethostbyaddr(&a.sin_addr, 4, AF_INET);
	printf("by addr %d\n", !hp || hp->h_length == 4);
	err = gethostbyaddr_r(&a.sin_addr, 4, AF_INET, &h, room, sizeof room, &hp, &n);
	printf("by addr_r %d\n", err == 0 || hp == 0);
	sethostent(0);
	hp = gethostent();
	printf("ent %d\n", !hp || hp->h_name != 0);
	err = gethostent_r(&h, room, sizeof room, &hp, &n);
	printf("ent_r %d\n", err == 0 || hp == 0);
	endhostent();
	sp = getservbyname("http", "tcp");
	printf("service %d\n", !sp || sp->s_port == htons(80));
	sp = getservbyport(htons(80), 0);
	printf("service %d\n", !sp || sp->s_port == htons(80));
	err = getservbyname_r("no-such-service", 0, &s, room, sizeof room, &sp);
	printf("service_r %d %d\n", err, sp == 0);
	err = getservbyport_r(htons(80), "tcp", &s, room, sizeof room, &sp);
	printf("service_r %d\n", err == 0 || sp == 0);
	pp = getprotobyname("tcp");
	printf("protocol %d\n", !pp || pp->p_proto == 6);
	pp = getprotobynumber(17);
	printf("protocol %d\n", !pp || pp->p_proto == 17);
	err = getprotobyname_r("tcp", &p, room, sizeof room, &pp);
	printf("protocol_r %d\n", err == 0 || pp == 0);
	err = getprotobynumber_r(17, &p, room, sizeof room, &pp);
	printf("protocol_r %d\n", err == 0 || pp == 0);
	printf("index %d\n", if_nametoindex("lo") != 0 || errno);
	printf("no index %u\n", if_nametoindex("no-such-if"));
	printf("index name %d\n", if_indextoname(if_nametoindex("lo"), name) != 0 || errno);
	printf("no name %d", if_indextoname(123456, name) == 0);
	printf(" %d\n", errno);
	ni = if_nameindex();
	printf("names %d\n", ni != 0);
	if_freenameindex(ni);
	printf("addresses %d\n", getifaddrs(&list));
	for (i = list; i; i = i->ifa_next)
		lo |= !strcmp(i->ifa_name, "lo");
	printf("lo %d\n", lo);
	freeifaddrs(list);
	return 0;
}

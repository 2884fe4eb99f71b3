/* POSIX message queues. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern mqd_t __mq_open_2(const char *, int);

static void say(const char *what, long r)
{
	printf("%s %ld %s\n", what, r, r < 0 ? strerror(errno) : "");
}

int main(void)
{
	char name[64], buf[128];
	struct mq_attr a = {.mq_maxmsg = 4, .mq_msgsize = 64}, was;
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	struct timespec past = {1, 0};
	unsigned prio = 0;
	mqd_t q, p;
	snprintf(name, sizeof name, "/prophet-test-%d", (int)getpid());
	say("not there", mq_open(name, O_RDWR));
	q = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &a);
	printf("made %d\n", q >= 0);
	p = __mq_open_2(name, O_RDWR);
	printf("opened %d\n", p >= 0);
	say("send", mq_send(q, "hello", 5, 1));
	say("send", mq_timedsend(p, "first", 6, 9, &past));
	say("too long", mq_send(q, buf, 100, 0));
	say("receive", mq_receive(q, buf, 64, &prio));
	printf("%s %u\n", buf, prio);
	say("receive", mq_timedreceive(q, buf, 64, 0, &past));
	say("empty", mq_timedreceive(q, buf, 64, &prio, &past));
	say("too small", mq_receive(q, buf, 10, 0));
	a.mq_flags = O_NONBLOCK;
	say("setattr", mq_setattr(q, &a, &was));
	say("empty", mq_receive(q, buf, 64, 0));
	say("getattr", mq_getattr(q, &was));
	printf("%ld %ld %ld\n", was.mq_maxmsg, was.mq_msgsize, was.mq_curmsgs);
	say("getattr nothing", mq_getattr(q, 0));
	say("setattr nothing", mq_setattr(q, 0, &was));
	say("setattr neither", mq_setattr(q, 0, 0));
	say("notify", mq_notify(q, &none));
	say("busy", mq_notify(p, &none));
	say("unnotify", mq_notify(q, 0));
	say("close", mq_close(p));
	say("close again", mq_close(p));
	say("unlink", mq_unlink(name));
	say("unlink again", mq_unlink(name));
	say("close", mq_close(q));
	return 0;
}

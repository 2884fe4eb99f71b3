/* Reads a trace through prophet.h: a small `prophet dump --json`. Built with
 *
 *	cc read.c -lprophet
 */
#include "../../cabi/prophet.h"
#include <inttypes.h>
#include <stdio.h>

static void quoted(const char *s, uint64_t n)
{
	uint64_t i;
	putchar('"');
	for (i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c < ' ')
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void show(const struct prophet_event *e)
{
	const struct prophet_field *f;
	printf("{\"t\":%" PRId64 ",\"thread\":\"%s\",", e->begin_ns, e->thread);
	if (e->kind == PROPHET_EVENT_MARK) {
		printf("\"record\":\"mark\",\"kind\":\"%s\"", e->call);
	} else {
		printf("\"n\":%" PRIu64 ",\"call\":\"%s\",\"class\":\"%s\"", e->number, e->call, e->category);
		if (*e->object)
			printf(",\"object\":\"%s\"", e->object);
		printf(",\"ret\":%" PRId64 ",\"error\":%d", e->ret, e->error);
	}
	for (f = e->field; f < e->field + e->fields; f++) {
		printf(",\"%s\":", f->name);
		if (f->kind == PROPHET_FIELD_TEXT)
			quoted(f->text, f->length);
		else if (f->kind == PROPHET_FIELD_NUMBER)
			printf("%" PRId64, f->value);
		else
			printf("%" PRIu64, (uint64_t)f->value);
	}
	if (e->order)
		printf(",\"seq\":%" PRIu64, e->order);
	if (e->flags & PROPHET_TIMED)
		printf(",\"took\":%" PRId64, e->end_ns - e->begin_ns);
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct prophet_event e;
	prophet_trace *trace;
	int r, damaged = 0;
	if (argc != 2) {
		fprintf(stderr, "usage: read TRACE\n");
		return 2;
	}
	r = prophet_open(argv[1], &trace);
	while (r >= 0) {
		e.size = sizeof e;
		r = prophet_next(trace, &e);
		if (r == 1) {
			show(&e);
		} else if (r == -74 /* EBADMSG: damage; what is behind it can be read */) {
			fprintf(stderr, "read: %s\n", prophet_trace_error(trace));
			damaged = 1;
			r = 0;
		} else if (r == 0) {
			break;
		}
	}
	if (r < 0)
		fprintf(stderr, "read: %s\n", prophet_trace_error(trace));
	prophet_close(trace);
	return r < 0 || damaged;
}

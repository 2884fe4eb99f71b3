// A library with function-local statics, for host.c to load where nobody sees its C++ library.
#include <atomic>
#include <stdexcept>
#include <unistd.h>

static std::atomic<int> made, tried;

struct slow {
	slow()
	{
		usleep(5000);
		made++;
	}
};

struct touchy {
	touchy()
	{
		if (tried++ < 3)
			throw std::runtime_error("not yet");
	}
};

extern "C" int use(int *caught)
{
	static slow s;
	try {
		static touchy t;
	} catch (std::exception &) {
		__atomic_add_fetch(caught, 1, __ATOMIC_RELAXED);
	}
	return made;
}

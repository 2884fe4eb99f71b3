// The same as chains.c for C++: names that the linker mangles, templates, a lambda, a handler of an exception.
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

#define CHAIN __attribute__((noinline))
#define AFTER() __asm__ volatile("" ::: "memory")

namespace c_space
{

CHAIN static void c_leaf()
{
	usleep(25000);
	AFTER();
}

template <typename T> struct c_holder {
	CHAIN void c_method(T)
	{
		c_leaf();
		AFTER();
	}
	virtual CHAIN void c_virtual(const std::string &s) const
	{
		if (!s.empty())
			c_leaf();
		AFTER();
	}
	virtual ~c_holder()
	{
	}
};

static inline __attribute__((always_inline)) void c_inlined(int n)
{
	if (n)
		usleep(25000);
	AFTER();
}

CHAIN static void c_inlines(int n)
{
	c_inlined(n);
	AFTER();
}

CHAIN static void c_throws(int n)
{
	if (n)
		throw std::runtime_error("x");
}

CHAIN static void c_catches()
{
	try {
		c_throws(1);
	} catch (const std::exception &) {
		c_leaf();
	}
	AFTER();
}

struct c_cleans {
	~c_cleans()
	{
		c_leaf();
	}
};

CHAIN static void c_unwinds()
{
	c_cleans c;
	c_throws(1);
}

} // namespace c_space

using namespace c_space;

int main()
{
	c_holder<std::vector<int>> h;
	h.c_method({});
	const c_holder<int> *v = new c_holder<int>;
	v->c_virtual("x");
	delete v;
	c_inlines(1);
	c_catches();
	try {
		c_unwinds();
	} catch (...) {
	}
	std::function<void()> f = [] {
		c_leaf();
		AFTER();
	};
	f();
	std::thread(f).join();
	return 0;
}

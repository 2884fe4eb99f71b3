// A task started by std::async is thought to have run when another one has: its result is used before it is there. Guarded:
// yes, re-executes under order alone. Fails: killed by SIGABRT, of an exception that nobody catches.
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unistd.h>

static std::mutex m;
static std::string setting;

int main()
{
	for (int i = 0; i < 5; i++) {
		setting.clear();
		auto loads = std::async(std::launch::async, [] {
			std::lock_guard<std::mutex> l(m);
			setting = "on";
		});
		for (int k = 0; k < 20; k++)
			getppid();
		auto uses = std::async(std::launch::async, [] {
			std::lock_guard<std::mutex> l(m);
			if (setting.empty())
				throw std::runtime_error("no setting");
		});
		uses.get();
		loads.get();
	}
	return 0;
}

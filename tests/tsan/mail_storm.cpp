// Workers as threads of one process, which exchange messages as storm.h says: for ThreadSanitizer.
// They have the same mapping of each arena, as it does not know that two mappings are one memory.
//
//     mail_storm [--exchanges N] [--workers W] [--lanes L] [--seed S]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "storm.h"

namespace decent::storm {
namespace {

std::vector<std::shared_ptr<Arena>> make_arenas(std::size_t workers) {
  std::vector<std::shared_ptr<Arena>> arenas;
  while (arenas.size() < workers) arenas.push_back(Mail::make_arena(workers));
  return arenas;
}

// False if the worker failed.
bool run_worker(const Plan& plan, const std::shared_ptr<Mail>& mail) {
  try {
    run(plan, mail);
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "worker %zu: %s\n", mail->own(), error.what());
    return false;
  }
}

bool run_all(const Plan& plan) {
  const auto arenas = make_arenas(plan.workers);
  std::vector<char> succeeded(plan.workers);
  std::vector<std::thread> workers;
  for (std::size_t worker = 0; worker < plan.workers; ++worker) {
    workers.emplace_back([&, worker] {
      succeeded[worker] = run_worker(plan, std::make_shared<Mail>(worker, arenas)) ? 1 : 0;
    });
  }
  for (std::thread& worker : workers) worker.join();
  return std::count(succeeded.begin(), succeeded.end(), 0) == 0;
}

}  // namespace
}  // namespace decent::storm

int main(int argc, char** argv) {
  using namespace decent::storm;
  try {
    const Plan plan = plan_of(
        flags_of({argv, static_cast<std::size_t>(argc)},
                 {{"--exchanges", 1'000'000}, {"--workers", 4}, {"--lanes", 2}, {"--seed", 1}}));
    const auto begin = std::chrono::steady_clock::now();
    const bool succeeded = run_all(plan);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    std::printf("%lld exchanges of %zu workers in %.1f s\n", static_cast<long long>(plan.exchanges),
                plan.workers, taken.count());
    return succeeded ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mail_storm: %s\n", error.what());
    return 2;
  }
}

#include "apps/simulation/interrupts.h"

#include <signal.h>

namespace fedge::apps {
namespace {

volatile sig_atomic_t noted_signal = 0;

}  // namespace

// Without SA_RESTART.
void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int number) { noted_signal = number; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupt_signal() { return noted_signal; }

}  // namespace fedge::apps

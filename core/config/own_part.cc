#include "core/config/own_part.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace fedge::config {

void refuse_registration(const std::string& message) {
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_short_name, message.c_str());
  std::exit(1);
}

std::string own_program_hint(const std::string& a_part, bool on_clients) {
  return "; if it is " + a_part +
         " of your own program, use your program instead of fedge-sim, and PROGRAM coordinator --run FILE "
         "instead of fedge-coordinator" +
         (on_clients ? ", and" : "; in a serverless run also") + " PROGRAM client instead of fedge-client";
}

}  // namespace fedge::config

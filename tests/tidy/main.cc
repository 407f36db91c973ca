// tidy ROOT: prints violations of the house rules as file:line: message; exits with 1 if there are any.
#include <cstdio>
#include <exception>

#include "tests/tidy/tidy.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tidy ROOT\n");
    return 2;
  }
  try {
    const auto findings = fedge::tidy::check_tree(argv[1]);
    for (const auto& finding : findings) std::printf("%s\n", fedge::tidy::to_string(finding).c_str());
    std::printf("tidy: %zu finding%s\n", findings.size(), findings.size() == 1 ? "" : "s");
    return findings.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tidy: %s\n", error.what());
    return 2;
  }
}

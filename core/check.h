// FEDGE_CHECK: an assertion that is always enabled. Only for bugs: input from a peer, a user or a file must
// never trigger one (use core/result.h for input).
#pragma once

#include <string_view>

namespace fedge {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail);

}  // namespace fedge

#define FEDGE_CHECK(condition, detail) \
  ((condition) ? static_cast<void>(0) : ::fedge::check_failed(__FILE__, __LINE__, #condition, detail))

// FEDGE_CHECK: an assert that is always on. For bugs only: nothing that a peer, a user or a file
// sends may ever reach one (that is what core/result.h is for).
#pragma once

#include <string_view>

namespace fedge {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view detail);

}  // namespace fedge

#define FEDGE_CHECK(condition, detail) \
  ((condition) ? static_cast<void>(0) : ::fedge::check_failed(__FILE__, __LINE__, #condition, detail))

// Interval at which the coordinator retries what a full disk prevented.
#pragma once

#include <chrono>

namespace fedge::server {

inline constexpr std::chrono::seconds kRetryWhenFull{1};

}  // namespace fedge::server

// Why a run ends, as its clients and the log are told.
#pragma once

namespace fedge::server {

inline constexpr const char* kAllRoundsDone = "all rounds are done";
inline constexpr const char* kReached = "run.stop_when is fulfilled";

}  // namespace fedge::server

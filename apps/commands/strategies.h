// `fedge strategies` and `fedge-sim strategies`: every strategy and every part that a run file may name, with
// its requirements, options and source. Parts that the program has registered are among them.
#pragma once

#include <string>

#include "core/result.h"

namespace fedge::apps {

// For a terminal: all strategies and parts, or those with this name. The error suggests a name.
Result<std::string> strategies(const std::string& name);
// docs/reference/strategies.md.
std::string strategies_page();

}  // namespace fedge::apps

// `fedge strategies`: every strategy and every part that a run file may name, with its requirements, options
// and source.
#pragma once

#include <string>
#include <vector>

namespace fedge::apps {

// For a terminal: all strategies and parts, or those with this name; empty if there is none.
std::string strategies(const std::string& name);
std::vector<std::string> strategy_names();
// docs/reference/strategies.md.
std::string strategies_page();

}  // namespace fedge::apps

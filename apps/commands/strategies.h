// `fedge strategies`: every strategy and every part that a run file may name, with what it needs, its options
// and where it was published.
#pragma once

#include <string>

namespace fedge::apps {

// For a terminal: all of them, or those of this name; empty if there is none.
std::string strategies(const std::string& name);
// docs/reference/strategies.md.
std::string strategies_page();

}  // namespace fedge::apps

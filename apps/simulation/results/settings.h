// Keys of a run file with their values, as --set takes them. Pure.
#pragma once

#include <map>
#include <string>

#include "core/config/document.h"

namespace fedge::apps {

// Returns the value as TOML on one line.
std::string toml_of(const config::Value& value);
// Returns every key of the table and of the tables in it, in full, with its value as TOML.
std::map<std::string, std::string> flat_settings(const config::Table& table);

}  // namespace fedge::apps

// Pages of docs/reference/, also for a terminal, generated from the tables that check configuration files.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"

namespace fedge::apps {

// `fedge reference NAME`: keys with their defaults, types and meanings. `name`: "run-file", "coordinator",
// "screening" or "power" for all keys of that file, or a section or key of one of them.
std::string key_reference(const std::string& name, bool markdown);

// Why key_reference() knows nothing of this name, with the nearest name; empty if it does.
std::string unknown_reference(const std::string& name);

// A Markdown table of these keys, and below it the values of keys whose meaning has a line for each value.
// `name` returns the text of the first column.
std::string key_table(std::span<const config::KeyDoc> keys, const std::string& first_column,
                      std::string (*name)(const config::KeyDoc& key));

// The meaning as one line: "How updates are clipped. flat: ... per_layer: ...".
std::string meaning_in_one_line(const config::KeyDoc& key);

}  // namespace fedge::apps

// Suggestions for misspelt words, and for keys outside of their section.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fedge::config {

// The closest of `known` to a misspelt word (edit distance at most a third of its length, or 2), if any.
std::optional<std::string> suggestion(std::string_view word, const std::vector<std::string>& known);

// An error message lists at most this many suggestions.
inline constexpr std::size_t kMostSuggested = 4;

// Returns the full keys in `known` whose last part is `key`, each once: "run.rounds" for "rounds".
std::vector<std::string> keys_named(const std::string& key, const std::vector<std::string>& known);

}  // namespace fedge::config

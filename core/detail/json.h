// Reads and writes JSON in one translation unit, because nlohmann's parser and writer cost each unit that
// instantiates them seconds to compile. For source files; no public header shows a JSON value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fedge {

inline constexpr int kMaxJsonLevels = 16;

// Returns a discarded value (is_discarded()) if the text is not JSON or nested deeper than kMaxJsonLevels;
// parsing stops at that depth.
nlohmann::json parse_json(std::string_view text);
// Same as parse_json() with a limit of `levels`. Objects keep the order of their fields.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int levels);
// Same as parse_json() with a limit of `levels`. Also discards a text in which an object has two members of
// one name, because two programs may read different ones of them.
nlohmann::json parse_json_without_duplicates(std::string_view text, int levels);

// Indented by `indent` spaces a level, or on one line; bytes that are not UTF-8 are replaced.
inline constexpr int kOneLine = -1;
std::string json_text(const nlohmann::json& json, int indent = kOneLine);
std::string json_text(const nlohmann::ordered_json& json, int indent = kOneLine);

}  // namespace fedge

// JSON text, read and written in one place for all rooms: nlohmann's parser and writer are seconds of each
// unit that instantiates them. For sources; no public header shows a JSON value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fedge {

inline constexpr int kMaxJsonLevels = 16;

// Discarded (is_discarded()) if the text is not JSON, or nested deeper than kMaxJsonLevels: then no more of
// it is built.
nlohmann::json parse_json(std::string_view text);
// Likewise, of so many levels. Objects keep the order of their fields.
nlohmann::ordered_json parse_ordered_json(std::string_view text, int levels);

// Indented by so many spaces a level, or on one line; what is not UTF-8 is replaced.
inline constexpr int kOneLine = -1;
std::string json_text(const nlohmann::json& json, int indent = kOneLine);
std::string json_text(const nlohmann::ordered_json& json, int indent = kOneLine);

}  // namespace fedge

#include "core/detail/json.h"

#include <set>
#include <vector>

#include "core/text.h"

namespace fedge {
namespace {

template <class Json>
std::string written(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Limits the depth: the parser has its own stack, but copying or writing a value recurses.
template <class Json>
Json parsed(std::string_view text, int levels) {
  bool too_deep = false;
  const auto shallow = [&](int depth, typename Json::parse_event_t event, const Json&) {
    using Event = typename Json::parse_event_t;
    const bool begins = event == Event::array_start || event == Event::object_start;
    too_deep = too_deep || (begins && depth >= levels);
    return !too_deep;
  };
  Json json = Json::parse(text, shallow, /*allow_exceptions=*/false);
  return too_deep ? Json(Json::value_t::discarded) : json;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) { return parsed<nlohmann::json>(text, kMaxJsonLevels); }

nlohmann::ordered_json parse_ordered_json(std::string_view text, int levels) {
  return parsed<nlohmann::ordered_json>(text, levels);
}

nlohmann::json parse_json_without_duplicates(std::string_view text, int levels) {
  bool refused = false;
  std::vector<std::set<std::string>> open;  // names in each of the objects around this place
  const auto once = [&](int depth, nlohmann::json::parse_event_t event, const nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    const bool begins = event == Event::array_start || event == Event::object_start;
    refused = refused || (begins && depth >= levels);
    if (refused) return false;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key) refused = !open.back().insert(value.get<std::string>()).second;
    return !refused;
  };
  nlohmann::json json = nlohmann::json::parse(text, once, /*allow_exceptions=*/false);
  return refused ? nlohmann::json(nlohmann::json::value_t::discarded) : json;
}

std::string json_text(const nlohmann::json& json, int indent) { return written(json, indent); }

std::string json_text(const nlohmann::ordered_json& json, int indent) { return written(json, indent); }

std::string json_text(const std::string& text) { return written(nlohmann::json(text), kOneLine); }

}  // namespace fedge

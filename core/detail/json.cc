#include "core/detail/json.h"
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

std::string json_text(const nlohmann::json& json, int indent) { return written(json, indent); }

std::string json_text(const nlohmann::ordered_json& json, int indent) { return written(json, indent); }

std::string json_text(const std::string& text) { return written(nlohmann::json(text), kOneLine); }

}  // namespace fedge

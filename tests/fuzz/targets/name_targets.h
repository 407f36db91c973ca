// Fuzz target of names: text of a peer or user in logs, tables, reports and JSON. Each place must show the
// text unchanged, and no character may end its field. The readers here are slow and share no code with the
// writers.
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/event.h"
#include "core/text.h"
#include "server/report/metrics.h"
#include "server/report/metrics_csv.h"
#include "server/report/page/page_frame.h"

namespace fedge::fuzz {

// Splits fields by RFC 4180 at `separator`; returns nothing if the text is not a valid line.
inline std::optional<std::vector<std::string>> read_fields(std::string_view text, char separator) {
  std::vector<std::string> fields(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && fields.back().empty()) {
      for (++i;; ++i) {
        if (i >= text.size()) return std::nullopt;
        if (text[i] != '"') {
          fields.back() += text[i];
        } else if (i + 1 < text.size() && text[i + 1] == '"') {
          fields.back() += text[i++];
        } else {
          break;
        }
      }
      if (i + 1 < text.size() && text[i + 1] != separator) return std::nullopt;
    } else if (text[i] == separator) {
      fields.emplace_back();
    } else {
      fields.back() += text[i];
    }
  }
  return fields;
}

inline std::string without_entities(std::string text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}, {"&amp;", '&'}}};
  std::string plain;
  for (std::size_t i = 0; i < text.size();) {
    std::string_view rest = std::string_view(text).substr(i);
    std::size_t length = 1;
    char c = text[i];
    for (const auto& [entity, character] : kEntities)
      if (rest.starts_with(entity)) length = entity.size(), c = character;
    plain += c;
    i += length;
  }
  return plain;
}

inline void check_written(const std::string& text) {
  const auto cells = read_fields(server::csv_field(text) + "," + server::csv_field("next"), ',');
  FEDGE_CHECK(cells && *cells == std::vector<std::string>({text, "next"}), "a name leaves its cell");
  const std::string html = server::escape_html(text);
  FEDGE_CHECK(html.find_first_of("<>\"'") == std::string::npos, "a name becomes markup");
  FEDGE_CHECK(without_entities(html) == text, "a page shows another name");
  const std::string line = to_string(Event{Severity::kInfo, "x", {}}.with("name", text));
  for (const char c : line)
    FEDGE_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "a name in a log");
}

// Names separated by line feeds.
inline void feed_names(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == '\n')
      names.emplace_back();
    else
      names.back() += c;
  }
  if (names.size() > 1 || !names.front().empty())
    FEDGE_CHECK(read_fields(server::joined_names(names, ' '), ' ') == names, "a list of names changes");
  for (const std::string& name : names) check_written(name);
  constexpr std::size_t kMax = 100;
  const bool fit = check_text(text, kMax, "name").has_value();
  const std::string clean = clean_text(text, kMax);
  FEDGE_CHECK(clean.size() <= kMax && check_text(clean, kMax, "name"), "cleaned text is not clean");
  FEDGE_CHECK(!fit || clean == text, "clean text changes");
  const auto json = nlohmann::json::parse(json_text(text), nullptr, false);
  FEDGE_CHECK(json.is_string(), "a name is no JSON text");
  FEDGE_CHECK(!fit || json.get<std::string>() == text, "a name changes in JSON");
}

}  // namespace fedge::fuzz

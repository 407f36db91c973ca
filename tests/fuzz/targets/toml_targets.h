// Fuzz target of TOML texts: the text itself, and the text in front of a nesting that would exhaust a
// recursive parser's stack.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "core/check.h"
#include "core/config/document.h"
#include "core/config/toml_depth.h"

namespace fedge::fuzz {

inline std::size_t toml_depth(const config::Value& value) {
  std::size_t deepest = 0;
  if (const auto* table = std::get_if<config::Table>(&value.data))
    for (const auto& [key, item] : *table) deepest = std::max(deepest, 1 + toml_depth(item));
  if (const auto* array = std::get_if<config::Array>(&value.data))
    for (const config::Value& item : *array) deepest = std::max(deepest, 1 + toml_depth(item));
  return deepest;
}

// An accepted text is no deeper than permitted and than measured before parsing. Two keys with dots make one
// path: the header's and that below it. Rewritten, the text means the same.
inline void feed_toml_document(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto document = config::parse_toml(text, "fuzz.toml");
  // A key of ten thousand parts behind a complete text must be refused before it is parsed.
  std::string key;
  for (int i = 0; i < 10'000; ++i) key += "a.";
  FEDGE_CHECK(!config::parse_toml(text + "\n" + key + "a = 1", "fuzz.toml") || !document,
              "a key of ten thousand parts was parsed");
  if (!document) {
    FEDGE_CHECK(!document.error().message.empty(), "an error says what is wrong");
    return;
  }
  const std::size_t depth = toml_depth(config::Value{document->root, ""});
  FEDGE_CHECK(depth <= config::kMaxDocumentDepth + 1, "deeper than is allowed");
  FEDGE_CHECK(depth <= 2 * (config::measure_toml(text, text.size()).levels + 1), "deeper than was measured");
  const std::string canonical = config::canonical_toml(document->root);
  if (canonical.size() > config::kMaxDocumentBytes) return;
  const auto again = config::parse_toml(canonical, "again.toml");
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(config::canonical_toml(again->root) == canonical, "a document has two texts");
}

}  // namespace fedge::fuzz

// A configuration file as plain data: tables, arrays and scalars that remember where they stood.
// Parsed from TOML; the parser's own headers stay in document.cc. Read it through config::Reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"

namespace fedge::config {

struct Value;
using Array = std::vector<Value>;
using Table = std::map<std::string, Value>;

struct Value {
  std::variant<std::int64_t, double, bool, std::string, Array, Table> data;
  std::string where;  // "run.toml:12", or "--set"
};

// "an integer", "a float", "a boolean", "a string", "a list", "a table".
const char* type_name(const Value& value);

inline constexpr std::size_t kMaxDocumentBytes = std::size_t{1} << 20;
// Tables and lists within each other.
inline constexpr std::size_t kMaxDocumentDepth = 32;

// A `kind` key that --set has set, and what the file says there, if anything.
struct KindChange {
  std::string key;  // "model.kind"
  std::optional<Value> former;
};

struct Document {
  std::string name;  // file name, for messages
  Table root;
  std::vector<KindChange> kind_changes = {};
};

// Parses TOML text of at most kMaxDocumentBytes and kMaxDocumentDepth, both bounded before it is parsed; a
// syntax error names file, line and column.
Result<Document> parse_toml(std::string_view text, const std::string& name);

// Applies "section.key=value" as on a command line. The value is read as TOML and, if that fails,
// taken as a text, so that --set strategy.kind=fedavg needs no quotes. Tables on the way are made. The place
// of what is set is "--set KEY".
Result<void> set(Document& document, const std::string& assignment);

// What stands at a full key, "model.adapter.rank"; null if nothing does.
const Value* find(const Table& table, std::string_view path);

// The document as TOML with keys in sorted order: one text for one meaning, whatever the file's
// formatting. This is what a run's hash is taken of and what clients are sent.
std::string canonical_toml(const Table& table);

}  // namespace fedge::config

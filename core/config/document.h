// A configuration file as plain data: tables, arrays and scalars with their place in the file. Parsed from
// TOML; only document.cc includes the parser's headers. Read a document through config::Reader.
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
// Most levels of nested tables and lists.
inline constexpr std::size_t kMaxDocumentDepth = 32;

// A `kind` key set by --set, and its value in the file, if any.
struct KindChange {
  std::string key;  // "model.kind"
  std::optional<Value> former;
};

struct Document {
  std::string name;  // file name, for messages
  Table root;
  std::vector<KindChange> kind_changes = {};
};

// How a place in a document is written: "run.toml:12", or "run 2, line 12" of text that is not in a file.
enum class PlaceStyle { kFile, kStored };

// Parses TOML of at most kMaxDocumentBytes and kMaxDocumentDepth, both checked before parsing. A syntax error
// names file, line and column. Text with a zero byte is refused as a file that is not text.
Result<Document> parse_toml(std::string_view text, const std::string& name,
                            PlaceStyle style = PlaceStyle::kFile);

// The error of parse_toml() if a file that begins with these bytes is not text.
Result<void> check_is_text(std::string_view beginning, const std::string& name);

// Applies "section.key=value" from a command line. The value is parsed as TOML or, if that fails, used as a
// string, so that --set strategy.kind=fedavg needs no quotes. Missing tables are created. The place of the
// value is "--set KEY".
Result<void> set(Document& document, const std::string& assignment);

// The value at a full key such as "model.adapter.rank"; null if absent.
const Value* find(const Table& table, std::string_view path);

// The document as TOML with sorted keys: equal documents give equal strings, whatever the file's formatting.
// A run's hash is computed from this string, and clients receive it.
std::string canonical_toml(const Table& table);

}  // namespace fedge::config

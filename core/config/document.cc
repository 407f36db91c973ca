#include "core/config/document.h"

#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "core/config/toml_depth.h"

namespace fedge::config {
namespace {

// The parser counts the dots in a header [a.b] and in its keys separately, so it may reach twice the
// permitted depth. The parsed document is checked again.
constexpr std::size_t kMaxParserDepth = 2 * kMaxDocumentDepth;

Error too_deep(const std::string& where) {
  return invalid(where + ": tables and lists are nested more than " + std::to_string(kMaxDocumentDepth) +
                 " levels deep; each part of a dotted key counts as one level");
}

// Where a document comes from, and how a line of it is written.
struct Source {
  const std::string& name;
  PlaceStyle style;

  std::string line(std::size_t number) const {
    return name + (style == PlaceStyle::kFile ? ":" : ", line ") + std::to_string(number);
  }
  std::string place(const toml::source_region& region) const {
    return region.begin.line == 0 ? name : line(region.begin.line);
  }
  std::string column(const toml::source_position& at) const {
    return line(at.line) + (style == PlaceStyle::kFile ? ":" : ", column ") + std::to_string(at.column);
  }
};

Result<Value> convert(const toml::node& node, const Source& from, std::size_t depth);

Result<Table> convert_table(const toml::table& source, const Source& from, std::size_t depth) {
  if (depth > kMaxDocumentDepth) return too_deep(from.place(source.source()));
  Table table;
  for (const auto& [key, node] : source) {
    FEDGE_TRY(value, convert(node, from, depth + 1));
    table.emplace(std::string(key.str()), std::move(value));
  }
  return table;
}

Result<Value> convert(const toml::node& node, const Source& from, std::size_t depth) {
  Value value{std::int64_t{0}, from.place(node.source())};
  if (const auto* table = node.as_table()) {
    FEDGE_TRY(converted, convert_table(*table, from, depth));
    value.data = std::move(converted);
  } else if (const auto* array = node.as_array()) {
    if (depth > kMaxDocumentDepth) return too_deep(value.where);
    Array items;
    for (const auto& item : *array) {
      FEDGE_TRY(converted, convert(item, from, depth + 1));
      items.push_back(std::move(converted));
    }
    value.data = std::move(items);
  } else if (const auto* text = node.as_string()) {
    value.data = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.data = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    value.data = number->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.data = boolean->get();
  } else {
    return invalid(value.where + ": dates and times are not supported; write a string or a number");
  }
  return value;
}

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04X", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string format_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  // Writes the shortest digits that read back as the same double.
  std::string out(text, std::to_chars(text, text + sizeof text, value).ptr);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

std::string key_text(const std::string& key) {
  constexpr const char* kBare = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return !key.empty() && key.find_first_not_of(kBare) == std::string::npos ? key : quote(key);
}

// Sets the place of a value and of all values inside it.
void place(Value& value, const std::string& where) {
  value.where = where;
  if (auto* table = std::get_if<Table>(&value.data))
    for (auto& [key, item] : *table) place(item, where);
  if (auto* array = std::get_if<Array>(&value.data))
    for (Value& item : *array) place(item, where);
}

std::string inline_value(const Value& value);

std::string inline_table(const Table& table) {
  std::string out = "{";
  for (const auto& [key, item] : table)
    out += (out.size() > 1 ? ", " : " ") + key_text(key) + " = " + inline_value(item);
  return out + " }";
}

std::string inline_value(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.data)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&value.data)) return format_number(*number);
  if (const auto* boolean = std::get_if<bool>(&value.data)) return *boolean ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value.data)) return quote(*text);
  if (const auto* table = std::get_if<Table>(&value.data)) return inline_table(*table);
  std::string out = "[";
  for (const Value& item : std::get<Array>(value.data))
    out += (out.size() > 1 ? ", " : "") + inline_value(item);
  return out + "]";
}

}  // namespace

const char* type_name(const Value& value) {
  switch (value.data.index()) {
    case 0:
      return "an integer";
    case 1:
      return "a float";
    case 2:
      return "a boolean";
    case 3:
      return "a string";
    case 4:
      return "a list";
    default:
      return "a table";
  }
}

Result<void> check_is_text(std::string_view beginning, const std::string& name) {
  if (beginning.find('\0') == std::string_view::npos) return {};
  return invalid(name + " is not a text file; run files and configuration files are TOML");
}

Result<Document> parse_toml(std::string_view text, const std::string& name, PlaceStyle style) {
  const Source from{name, style};
  FEDGE_TRY_VOID(check_is_text(text, name));
  if (text.size() > kMaxDocumentBytes)
    return invalid(name + ": the file is too large; a configuration file may have at most 1 MiB");
  if (const TomlDepth deepest = measure_toml(text, kMaxParserDepth); deepest.levels > kMaxParserDepth)
    return too_deep(from.line(deepest.line));
  try {
    const toml::table parsed = toml::parse(text, name);
    FEDGE_TRY(root, convert_table(parsed, from, 0));
    return Document{name, std::move(root)};
  } catch (const toml::parse_error& error) {
    return invalid(from.column(error.source().begin) + ": " + std::string(error.description()));
  }
}

Result<void> set(Document& document, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0)
    return invalid("--set " + assignment + ": expected KEY=VALUE, such as run.rounds=20");
  const std::string path = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  Value value{text, "--set " + path};
  if (auto parsed = parse_toml("v = " + text, value.where); parsed && parsed->root.size() == 1)
    value.data = std::move(parsed->root.at("v").data);
  place(value, value.where);
  if (static_cast<std::size_t>(std::ranges::count(path, '.')) >= kMaxDocumentDepth)
    return too_deep("--set " + path.substr(0, 40) + "...");
  Table* table = &document.root;
  std::istringstream parts(path);
  std::string key;
  std::string next;
  std::getline(parts, key, '.');
  while (std::getline(parts, next, '.')) {
    Value& child = table->try_emplace(key, Value{Table{}, value.where}).first->second;
    if (!std::holds_alternative<Table>(child.data))
      return invalid("--set " + assignment + ": " + key + " is " + type_name(child) +
                     "; only a table can hold further keys");
    table = &std::get<Table>(child.data);
    key = next;
  }
  if (key.empty())
    return invalid("--set " + assignment + ": the key is empty; expected KEY=VALUE, such as run.rounds=20");
  if (key == "kind" && table != &document.root) {
    const auto change = std::ranges::find(document.kind_changes, path, &KindChange::key);
    const auto former = table->find(key);
    if (change == document.kind_changes.end())
      document.kind_changes.push_back(
          {path, former == table->end() ? std::nullopt : std::optional(former->second)});
  }
  (*table)[key] = std::move(value);
  return {};
}

const Value* find(const Table& table, std::string_view path) {
  const std::size_t dot = path.find('.');
  const auto found = table.find(std::string(path.substr(0, dot)));
  if (found == table.end()) return nullptr;
  if (dot == std::string_view::npos) return &found->second;
  const auto* inner = std::get_if<Table>(&found->second.data);
  return inner == nullptr ? nullptr : find(*inner, path.substr(dot + 1));
}

std::string canonical_toml(const Table& table) {
  std::string out;
  for (const auto& [key, value] : table)
    if (!std::holds_alternative<Table>(value.data)) out += key_text(key) + " = " + inline_value(value) + "\n";
  for (const auto& [key, value] : table) {
    const auto* section = std::get_if<Table>(&value.data);
    if (section == nullptr) continue;
    out += (out.empty() ? "[" : "\n[") + key_text(key) + "]\n";
    for (const auto& [name, item] : *section) out += key_text(name) + " = " + inline_value(item) + "\n";
  }
  return out;
}

}  // namespace fedge::config

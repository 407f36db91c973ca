#include "apps/simulation/results/settings.h"

#include <variant>

namespace fedge::apps {
namespace {

void add_flat(const config::Table& table, const std::string& path, std::map<std::string, std::string>& into) {
  for (const auto& [key, value] : table) {
    const std::string full = path.empty() ? key : path + "." + key;
    if (const auto* inner = std::get_if<config::Table>(&value.data))
      add_flat(*inner, full, into);
    else
      into[full] = toml_of(value);
  }
}

}  // namespace

// A list is written on one line, also if it contains a table.
std::string toml_of(const config::Value& value) {
  const std::string line = config::canonical_toml({{"v", config::Value{config::Array{value}, ""}}});
  return line.substr(5, line.size() - 7);  // without "v = [", "]" and the line feed
}

std::map<std::string, std::string> flat_settings(const config::Table& table) {
  std::map<std::string, std::string> settings;
  add_flat(table, "", settings);
  return settings;
}

}  // namespace fedge::apps

#include "apps/admin/cells.h"

#include "core/detail/json.h"

namespace fedge::apps {

Listing::Cell cell_of(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  std::string text;
  if (value.is_string()) text = value.get<std::string>();
  if (value.is_array())
    for (const Json& one : value) text += (text.empty() ? "" : ",") + one.get<std::string>();
  return text.empty() ? Listing::Cell() : Listing::Cell(text);
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::vector<Listing::Cell> cells_of(const Json& object, const std::vector<std::string>& names) {
  std::vector<Listing::Cell> cells;
  for (const std::string& name : names)
    cells.push_back(object.contains(name) ? cell_of(object[name]) : Listing::Cell());
  return cells;
}

std::string printed(const Json& rows, const std::vector<std::string>& columns, const std::string& format) {
  if (format == "json") {
    std::string text = "[";
    for (const Json& row : rows) text += (text == "[" ? "\n " : ",\n ") + json_text(row);
    return text + "\n]\n";
  }
  Listing list(columns);
  for (const Json& row : rows) list.add(cells_of(row, columns));
  return list.table();
}

std::string printed_object(const Json& row, const std::vector<std::string>& columns,
                           const std::string& format) {
  if (format == "json") return json_text(row) + "\n";
  Listing list(columns);
  list.add(cells_of(row, columns));
  return list.lines();
}

}  // namespace fedge::apps

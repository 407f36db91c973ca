#include "apps/commands/listing.h"

#include <algorithm>
#include <cstdio>

#include "core/text.h"

namespace fedge::apps {
namespace {

std::string with_decimals(double value, int decimals) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string shown(const Listing::Cell& cell) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) return std::to_string(*number);
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "yes" : "no";
  if (const auto* fraction = std::get_if<Listing::Fraction>(&cell))
    return with_decimals(100 * fraction->value, 2) + " %" + fraction->note;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return "-";
}

std::string as_json(const Listing::Cell& cell) {
  if (const auto* flag = std::get_if<bool>(&cell)) return *flag ? "true" : "false";
  if (const auto* fraction = std::get_if<Listing::Fraction>(&cell)) return with_decimals(fraction->value, 6);
  if (const auto* text = std::get_if<std::string>(&cell)) return json_text(*text);
  return std::holds_alternative<std::monostate>(cell) ? "null" : shown(cell);
}

}  // namespace

std::string Listing::table() const {
  std::vector<std::size_t> widths;
  for (const std::string& column : columns_) widths.push_back(column.size());
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], shown(row[i]).size());
  std::string out;
  const auto put = [&](std::size_t column, const std::string& text, bool right) {
    const std::string padding(widths[column] - text.size(), ' ');
    out += (column == 0 ? "" : "  ") + (right ? padding + text : text + padding);
  };
  const auto end_line = [&] { out.erase(out.find_last_not_of(' ') + 1).push_back('\n'); };
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool number = !rows_.empty() && std::holds_alternative<std::int64_t>(rows_.front()[i]);
    put(i, columns_[i], number);
  }
  end_line();
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i)
      put(i, shown(row[i]), std::holds_alternative<std::int64_t>(row[i]));
    end_line();
  }
  return out;
}

std::string Listing::object(const std::vector<Cell>& row) const {
  std::string out = "{";
  for (std::size_t i = 0; i < row.size(); ++i)
    out += (i == 0 ? "" : ", ") + json_text(columns_[i]) + ": " + as_json(row[i]);
  return out + "}";
}

std::string Listing::json() const {
  std::string out = "[";
  for (std::size_t i = 0; i < rows_.size(); ++i) out += (i == 0 ? "\n " : ",\n ") + object(rows_[i]);
  return out + "\n]\n";
}

std::string Listing::lines() const {
  std::size_t width = 0;
  for (const std::string& column : columns_) width = std::max(width, column.size());
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    out += columns_[i] + std::string(width - columns_[i].size() + 2, ' ') + shown(rows_.front()[i]) + "\n";
  return out;
}

std::string Listing::object() const { return object(rows_.front()) + "\n"; }

}  // namespace fedge::apps

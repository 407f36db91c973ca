#include "apps/simulation/sweep/sweep_tables.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace fedge::apps {
namespace {

constexpr std::size_t kFigureWidth = 15;  // "1234.5 ± 123.4"

// In characters: bytes of UTF-8 that do not continue one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::size_t figure_width(const std::string& title) { return std::max(kFigureWidth, width(title)); }

std::string padded(const std::string& text, std::size_t wanted) {
  const std::size_t has = width(text);
  return has < wanted ? text + std::string(wanted - has, ' ') : text;
}

// A vertical line would end the cell of a Markdown table.
std::string cell_text(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2))
    text.insert(at, "\\");
  return text;
}

}  // namespace

Result<SweepTables> SweepTables::create(const SweepResults& results, std::vector<std::size_t> paired,
                                        std::string tuned, std::size_t seeds) {
  SweepTables tables(results, std::move(paired), std::move(tuned), seeds);
  if (tables.pivoted() && results.columns().size() != 1)
    return invalid("an axis whose choices are columns needs exactly one column of results; `columns` has " +
                   std::to_string(results.columns().size()));
  if (tables.pivoted() && !tables.tuned_.empty())
    return invalid("an axis whose choices are columns cannot be tuned for");
  const std::size_t count = tables.cells_from(Axis::Place::kRows);
  for (std::size_t first = 0; first < results.cells().size(); first += count) tables.add_table(first, count);
  return tables;
}

SweepTables::SweepTables(const SweepResults& results, std::vector<std::size_t> paired, std::string tuned,
                         std::size_t seeds)
    : results_(&results), paired_(std::move(paired)), tuned_(std::move(tuned)), seeds_(seeds) {
  for (const Axis& axis : results.axes()) {
    if (axis.place != Axis::Place::kRows) continue;
    std::size_t most = width(axis.name);
    for (const Choice& choice : axis.choices) most = std::max(most, width(cell_text(choice.name)));
    name_widths_.push_back(most);
  }
}

std::size_t SweepTables::cells_from(Axis::Place place) const {
  const auto rank = [](Axis::Place one) {
    return one == Axis::Place::kTables ? 0 : one == Axis::Place::kRows ? 1 : 2;
  };
  std::size_t count = 1;
  for (const Axis& axis : results_->axes())
    if (rank(axis.place) >= rank(place)) count *= axis.choices.size();
  return count;
}

std::string SweepTables::choices(std::size_t cell, Axis::Place place) const {
  std::string text;
  for (std::size_t a = 0; a < results_->axes().size(); ++a) {
    const Axis& axis = results_->axes()[a];
    if (axis.place != place) continue;
    text += (text.empty() ? "" : ", ") + axis.choices[results_->cells()[cell].choices[a]].name;
  }
  return text;
}

std::vector<SweepTables::Row> SweepTables::rows_of(std::size_t first, std::size_t count) const {
  const std::size_t across = cells_from(Axis::Place::kColumns);
  std::vector<Row> rows;
  for (std::size_t begin = first; begin < first + count; begin += across) {
    Row row;
    for (std::size_t a = 0; a < results_->axes().size(); ++a)
      if (const Axis& axis = results_->axes()[a]; axis.place == Axis::Place::kRows)
        row.names.push_back(cell_text(axis.choices[results_->cells()[begin].choices[a]].name));
    row.cells.resize(across);
    std::iota(row.cells.begin(), row.cells.end(), begin);
    rows.push_back(std::move(row));
  }
  return rows;
}

void SweepTables::add_text(std::string text) {
  lines_.push_back({{}, [text = std::move(text)](const SweepTables&) { return text; }});
}

void SweepTables::add_table(std::size_t first, std::size_t count) {
  const std::string name = choices(first, Axis::Place::kTables);
  const std::string figure = pivoted() ? results_->columns().front().title : "";
  const std::string heading = name + (name.empty() || figure.empty() ? "" : ": ") + figure;
  if (first > 0) add_text("\n");
  if (!heading.empty()) add_text("**" + heading + "**\n\n");
  std::vector<std::size_t> all(results_->columns().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<std::string> names = titles(all);
  if (!tuned_.empty()) names.insert(names.begin(), tuned_);
  add_text(header(names));
  const std::vector<Row> rows = rows_of(first, count);
  for (const Row& row : rows) {
    std::vector<std::size_t> needs = row.cells;
    for (const Column& column : results_->columns())
      for (const std::size_t cell : row.cells)
        if (column.relative) needs.push_back(*results_->baseline_of(cell));
    lines_.push_back({std::move(needs), [row, names](const SweepTables& tables) {
                        return tables.line(row.names, tables.figures(row), names);
                      }});
  }
  add_differences(rows);
}

void SweepTables::add_differences(const std::vector<Row>& rows) {
  if (!results_->baseline()) return;
  const std::vector<std::string> names = titles(paired_);
  std::vector<Line> lines;
  for (const Row& row : rows) {
    std::vector<std::size_t> needs;
    bool other = false;
    for (const std::size_t cell : row.cells) {
      needs.insert(needs.end(), {cell, *results_->baseline_of(cell)});
      other = other || results_->baseline_of(cell) != cell;
    }
    if (!other) continue;
    lines.push_back({std::move(needs), [row, names](const SweepTables& tables) {
                       return tables.line(row.names, tables.differences(row), names);
                     }});
  }
  if (lines.empty()) return;
  add_text("\nMinus \"" + *results_->baseline() + "\", on the same seeds" +
           (seeds_ > 1 ? ": mean difference ± its 95 % confidence interval, bold if that excludes 0" : "") +
           ".\n\n" + header(names));
  std::ranges::move(lines, std::back_inserter(lines_));
}

std::vector<std::string> SweepTables::titles(const std::vector<std::size_t>& columns) const {
  std::vector<std::string> names;
  if (pivoted()) {
    for (std::size_t cell = 0; cell < cells_from(Axis::Place::kColumns); ++cell)
      names.push_back(cell_text(choices(cell, Axis::Place::kColumns)));
  } else {
    for (const std::size_t column : columns) names.push_back(results_->columns()[column].title);
  }
  return names;
}

std::vector<std::string> SweepTables::figures(const Row& row) const {
  std::vector<std::string> texts;
  if (!tuned_.empty()) texts.push_back(results_->of(row.cells.front()).tuned);
  for (const std::size_t cell : row.cells)
    for (std::size_t column = 0; column < results_->columns().size(); ++column)
      texts.push_back(results_->shown(cell, column));
  return texts;
}

std::vector<std::string> SweepTables::differences(const Row& row) const {
  std::vector<std::string> texts;
  for (const std::size_t cell : row.cells)
    for (const std::size_t column : pivoted() ? std::vector<std::size_t>{0} : paired_)
      texts.push_back(results_->shown_difference(cell, column));
  return texts;
}

std::string SweepTables::line(const std::vector<std::string>& names, const std::vector<std::string>& figures,
                              const std::vector<std::string>& titles) const {
  std::string text = "|";
  for (std::size_t i = 0; i < names.size(); ++i) text += " " + padded(names[i], name_widths_[i]) + " |";
  for (std::size_t i = 0; i < figures.size(); ++i)
    text += " " + padded(figures[i], figure_width(titles[i])) + " |";
  return text + "\n";
}

std::string SweepTables::header(const std::vector<std::string>& titles) const {
  std::vector<std::string> names;
  std::vector<std::string> name_dashes;
  for (const Axis& axis : results_->axes()) {
    if (axis.place != Axis::Place::kRows) continue;
    name_dashes.emplace_back(name_widths_[names.size()], '-');
    names.push_back(cell_text(axis.name));
  }
  std::vector<std::string> dashes;
  for (const std::string& title : titles) dashes.emplace_back(figure_width(title), '-');
  return line(names, titles, titles) + line(name_dashes, dashes, titles);
}

std::string SweepTables::take_lines() {
  std::string text;
  for (; taken_ < lines_.size(); ++taken_) {
    const Line& line = lines_[taken_];
    if (!std::ranges::all_of(line.needs, [&](std::size_t cell) { return results_->has(cell); })) break;
    text += line.text(*this);
  }
  return text;
}

std::string SweepTables::markdown() const {
  std::string text;
  for (const Line& line : lines_) text += line.text(*this);
  return text;
}

}  // namespace fedge::apps

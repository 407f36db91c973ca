// Listing: rows for people or programs: a table with aligned columns, or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace fedge::apps {

class Listing {
 public:
  struct Fraction {
    double value;      // finite; printed in per cent
    std::string note;  // for people, behind it
  };
  // The first: no value.
  using Cell = std::variant<std::monostate, std::int64_t, bool, Fraction, std::string>;

  explicit Listing(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

  // A line of column names, and one for each row; numbers are right-aligned.
  std::string table() const;
  // An array of objects, one on each line.
  std::string json() const;
  // For a listing of one row: a line for each column, or an object.
  std::string lines() const;
  std::string object() const;

 private:
  std::string object(const std::vector<Cell>& row) const;

  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace fedge::apps

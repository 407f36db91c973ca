// A list for people or for programs: a table with aligned columns, or JSON.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace fedge::apps {

class Listing {
 public:
  using Cell = std::variant<std::monostate, std::int64_t, bool, std::string>;  // the first: nothing to say

  explicit Listing(std::vector<std::string> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }

  // A line of names, and one for each row; numbers are flushed right.
  std::string table() const;
  // An array of objects, one a line.
  std::string json() const;
  // Of the one row there is: a line for each column, or an object.
  std::string lines() const;
  std::string object() const;

 private:
  std::string object(const std::vector<Cell>& row) const;

  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace fedge::apps

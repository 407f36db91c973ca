#include "swarm/attribution/assignment.h"

#include <limits>

#include "core/check.h"

namespace fedge::swarm {
namespace {

constexpr std::size_t kFree = std::numeric_limits<std::size_t>::max();

// Costs are negated scores. Invariant: no cost is below the sum of its row's and column's price, and they are
// equal where a row is assigned. Column 0 stands for the row that is being added.
class Prices {
 public:
  explicit Prices(const std::vector<std::vector<double>>& scores)
      : scores_(scores),
        columns_(scores.front().size()),
        row_price_(scores.size()),
        column_price_(columns_ + 1),
        row_of_(columns_ + 1, kFree) {}

  void add(std::size_t row) {
    std::vector<double> distance(columns_ + 1, std::numeric_limits<double>::infinity());
    std::vector<std::size_t> before(columns_ + 1);
    std::vector<bool> done(columns_ + 1);
    row_of_[0] = row;
    std::size_t column = 0;
    while (row_of_[column] != kFree) {
      done[column] = true;
      std::size_t nearest = 0;
      for (std::size_t next = 1; next <= columns_; ++next) {
        if (done[next]) continue;
        const double reduced =
            -scores_[row_of_[column]][next - 1] - row_price_[row_of_[column]] - column_price_[next];
        if (reduced < distance[next]) {
          distance[next] = reduced;
          before[next] = column;
        }
        if (nearest == 0 || distance[next] < distance[nearest]) nearest = next;
      }
      const double step = distance[nearest];
      for (std::size_t other = 0; other <= columns_; ++other) {
        if (done[other]) {
          row_price_[row_of_[other]] += step;
          column_price_[other] -= step;
        } else {
          distance[other] -= step;
        }
      }
      column = nearest;
    }
    for (; column != 0; column = before[column]) row_of_[column] = row_of_[before[column]];
  }

  std::vector<std::size_t> columns() const {
    std::vector<std::size_t> result(row_price_.size());
    for (std::size_t column = 1; column <= columns_; ++column)
      if (row_of_[column] != kFree) result[row_of_[column]] = column - 1;
    return result;
  }

 private:
  const std::vector<std::vector<double>>& scores_;
  std::size_t columns_;
  std::vector<double> row_price_;
  std::vector<double> column_price_;
  std::vector<std::size_t> row_of_;
};

}  // namespace

std::vector<std::size_t> best_assignment(const std::vector<std::vector<double>>& scores) {
  if (scores.empty()) return {};
  FEDGE_CHECK(scores.size() <= scores.front().size(), "a column for each row");
  Prices prices(scores);
  for (std::size_t row = 0; row < scores.size(); ++row) prices.add(row);
  return prices.columns();
}

}  // namespace fedge::swarm

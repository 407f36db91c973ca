#include "aggregation/aggregators/robust/krum.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "aggregation/aggregators/robust/column_sort.h"
#include "aggregation/aggregators/robust/combination.h"
#include "aggregation/aggregators/robust/row_rule.h"
#include "aggregation/aggregators/robust/rules.h"

namespace fedge::aggregation {

KrumScores::KrumScores(const PairDistances& distances, Parallel& parallel) : distances_(&distances) {
  const std::size_t rows = distances.rows();
  nearest_.resize(rows * (rows - 1));
  parallel.for_each(rows, [&](std::size_t row) {
    const auto begin = nearest_.begin() + static_cast<std::ptrdiff_t>(row * (rows - 1));
    const auto own = begin + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(rows - 1);
    std::iota(begin, own, 0U);
    std::iota(own, end, static_cast<std::uint32_t>(row + 1));
    std::sort(begin, end, [&](std::uint32_t a, std::uint32_t b) {
      const double to_a = distances.between(row, a);
      const double to_b = distances.between(row, b);
      return to_a != to_b ? to_a < to_b : a < b;
    });
  });
}

double KrumScores::score(std::size_t row, std::size_t neighbours, const std::vector<bool>& left) const {
  double sum = 0;
  const std::uint32_t* other = nearest_.data() + row * (distances_->rows() - 1);
  for (std::size_t found = 0; found < neighbours; ++other) {
    if (!left[*other]) continue;
    sum += distances_->between(row, *other);
    ++found;
  }
  return sum;
}

std::vector<double> KrumScores::scores(std::size_t neighbours) const {
  const std::vector<bool> all(distances_->rows(), true);
  std::vector<double> scores;
  for (std::size_t row = 0; row < all.size(); ++row) scores.push_back(score(row, neighbours, all));
  return scores;
}

std::vector<std::uint32_t> select_repeatedly(const KrumScores& scores, std::size_t rows, std::size_t count,
                                             std::size_t byzantine) {
  std::vector<bool> left(rows, true);
  for (std::size_t remaining = rows; remaining > rows - count; --remaining) {
    const std::size_t neighbours =
        std::min(remaining > byzantine + 2 ? remaining - byzantine - 2 : 1, remaining - 1);
    std::size_t winner = rows;
    double best = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      if (!left[row]) continue;
      const double score = scores.score(row, neighbours, left);
      if (winner == rows || score < best) {
        winner = row;
        best = score;
      }
    }
    left[winner] = false;
  }
  std::vector<std::uint32_t> selected;
  for (std::uint32_t row = 0; row < rows; ++row)
    if (!left[row]) selected.push_back(row);
  return selected;
}

namespace {

// Number of hostile rows that a rule must tolerate: configured, or a fifth of the rows.
struct Byzantine {
  std::optional<std::size_t> number;

  std::size_t of(std::size_t rows) const { return number.value_or(rows / 5); }
  static Byzantine read(config::Reader& section, const char* doc) {
    const std::int64_t number = section.integer("byzantine", -1, {-1, 1'000'000}, doc);
    if (number < 0) return {};
    return {static_cast<std::size_t>(number)};
  }
};

constexpr const char* kByzantineDoc =
    "Number of hostile updates that the rule must tolerate. -1: a fifth of the round's updates.";

std::string named(const char* rule, std::size_t byzantine) {
  return std::string(rule) + " with byzantine = " + std::to_string(byzantine);
}

// The mean of the `select` rows with the lowest scores; Krum selects one.
class MultiKrum final : public RowRule {
 public:
  // `select` 0: all rows minus the tolerated hostile ones.
  MultiKrum(const char* name, Byzantine byzantine, std::size_t select)
      : name_(name), byzantine_(byzantine), select_(select) {}

  Result<void> prepare(KeptUpdates& rows, Parallel& parallel) override {
    const std::size_t count = rows.rows();
    const std::size_t byzantine = byzantine_.of(count);
    FEDGE_TRY_VOID(rows.require_rows(2 * byzantine + 3, named(name_, byzantine)));
    const std::size_t select = select_ > 0 ? select_ : count - byzantine;
    FEDGE_TRY_VOID(
        rows.require_rows(select, std::string(name_) + " with select = " + std::to_string(select)));
    FEDGE_TRY_VOID(rows.limit_rows(kMaxPairedRows));
    FEDGE_TRY(distances, PairDistances::measure(rows, parallel));
    const std::vector<double> scores = KrumScores(distances, parallel).scores(count - byzantine - 2);
    std::vector<std::uint32_t> order(rows.all_rows().begin(), rows.all_rows().end());
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return scores[a] != scores[b] ? scores[a] < scores[b] : a < b;
    });
    mean_.coefficients.assign(count, 0.0);
    for (std::size_t i = 0; i < select; ++i) mean_.coefficients[order[i]] = 1.0 / static_cast<double>(select);
    return {};
  }

  Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                    Parallel& parallel) override {
    return combine(rows, mean_, first, out, parallel);
  }

 private:
  const char* name_;
  Byzantine byzantine_;
  std::size_t select_;
  Combination mean_;
};

class Bulyan final : public RowRule {
 public:
  explicit Bulyan(Byzantine byzantine) : byzantine_(byzantine) {}

  Result<void> prepare(KeptUpdates& rows, Parallel& parallel) override {
    const std::size_t count = rows.rows();
    FEDGE_TRY_VOID(rows.require_rows(3, "bulyan"));
    // Bulyan needs 4f + 3 rows; with few rows a fifth is too many.
    const std::size_t byzantine = byzantine_.number.value_or(std::min(count / 5, (count - 3) / 4));
    FEDGE_TRY_VOID(rows.require_rows(4 * byzantine + 3, named("bulyan", byzantine)));
    FEDGE_TRY_VOID(rows.limit_rows(kMaxPairedRows));
    FEDGE_TRY(distances, PairDistances::measure(rows, parallel));
    const std::size_t select = count - 2 * byzantine;
    selected_ = select_repeatedly(KrumScores(distances, parallel), count, select, byzantine);
    sort_ = ColumnSort::closest(select, select - 2 * byzantine);
    return {};
  }

  Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                    Parallel& parallel) override {
    return sort_->read(rows, {.first = first, .count = out.size(), .rows = selected_}, out, parallel);
  }

 private:
  Byzantine byzantine_;
  std::vector<std::uint32_t> selected_;
  std::optional<ColumnSort> sort_;
};

}  // namespace

AggregatorPart read_krum(config::Reader& section) {
  const Byzantine byzantine = Byzantine::read(section, kByzantineDoc);
  return on_rows({.name = "krum",
                  .options = read_row_options(section),
                  .min_rows = 2 * byzantine.number.value_or(0) + 3},
                 [=](const AggregatorContext&) { return std::make_unique<MultiKrum>("krum", byzantine, 1); });
}

AggregatorPart read_multi_krum(config::Reader& section) {
  const Byzantine byzantine = Byzantine::read(section, kByzantineDoc);
  const auto select =
      static_cast<std::size_t>(section.integer("select", 0, {0, 1'000'000},
                                               "Number of updates that are averaged: those with the lowest "
                                               "scores. 0: the number of updates minus byzantine."));
  return on_rows(
      {.name = "multi_krum",
       .options = read_row_options(section),
       .min_rows = std::max(2 * byzantine.number.value_or(0) + 3, select)},
      [=](const AggregatorContext&) { return std::make_unique<MultiKrum>("multi_krum", byzantine, select); });
}

AggregatorPart read_bulyan(config::Reader& section) {
  const Byzantine byzantine =
      Byzantine::read(section,
                      "Number of hostile updates that the rule must tolerate. -1: a fifth of the round's "
                      "updates, but at most as many as the rule can tolerate.");
  return on_rows({.name = "bulyan",
                  .options = read_row_options(section),
                  .min_rows = 4 * byzantine.number.value_or(0) + 3},
                 [=](const AggregatorContext&) { return std::make_unique<Bulyan>(byzantine); });
}

}  // namespace fedge::aggregation

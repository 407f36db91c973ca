// median and trimmed_mean, computed for each parameter separately (Yin et al., ICML 2018, definitions 1 and
// 2).
#include <optional>
#include <string>

#include "aggregation/aggregators/robust/column_sort.h"
#include "aggregation/aggregators/robust/row_rule.h"
#include "aggregation/aggregators/robust/rules.h"
#include "aggregation/aggregators/robust/sorting_network.h"

namespace fedge::aggregation {
namespace {

class MiddleOfColumns final : public RowRule {
 public:
  // How many of the lowest and of the highest values to drop: `trim`, a fifth of the rows, or as many as
  // possible. The last leaves the median.
  enum class Trim { kNumber, kFifth, kAllButMiddle };
  MiddleOfColumns(const char* name, Trim how, std::size_t trim) : name_(name), how_(how), trim_(trim) {}

  Result<void> prepare(KeptUpdates& rows, Parallel&) override {
    const std::size_t count = rows.rows();
    std::size_t trim = trim_;
    if (how_ == Trim::kFifth) trim = count / 5;
    if (how_ == Trim::kAllButMiddle) trim = (count - 1) / 2;
    FEDGE_TRY_VOID(
        rows.require_rows(2 * trim + 1, std::string(name_) + " with trim = " + std::to_string(trim)));
    FEDGE_TRY_VOID(rows.limit_rows(kMaxSortedRows));
    sort_ = ColumnSort::middle(count, count - 2 * trim);
    return {};
  }

  Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                    Parallel& parallel) override {
    return sort_->read(rows, {.first = first, .count = out.size(), .rows = rows.all_rows()}, out, parallel);
  }

 private:
  const char* name_;
  Trim how_;
  std::size_t trim_;
  std::optional<ColumnSort> sort_;
};

using Trim = MiddleOfColumns::Trim;

}  // namespace

AggregatorPart read_median(config::Reader& section) {
  return on_rows({.name = "median", .options = read_row_options(section)}, [](const AggregatorContext&) {
    return std::make_unique<MiddleOfColumns>("median", Trim::kAllButMiddle, 0);
  });
}

AggregatorPart read_trimmed_mean(config::Reader& section) {
  const std::int64_t number =
      section.integer("trim", -1, {-1, 1'000'000},
                      "Number of values of a parameter that are dropped at each end: this many of the lowest "
                      "and as many of the highest. -1: a fifth of the updates at each end.");
  const Trim how = number < 0 ? Trim::kFifth : Trim::kNumber;
  const auto trim = static_cast<std::size_t>(number < 0 ? 0 : number);
  return on_rows(
      {.name = "trimmed_mean", .options = read_row_options(section), .min_rows = 2 * trim + 1},
      [=](const AggregatorContext&) { return std::make_unique<MiddleOfColumns>("trimmed_mean", how, trim); });
}

}  // namespace fedge::aggregation

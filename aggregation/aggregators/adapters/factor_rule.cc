#include "aggregation/aggregators/adapters/factor_rule.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {

Result<void> FactorRule::add(std::span<const Update> updates, Parallel&) {
  updates_.insert(updates_.end(), updates.begin(), updates.end());
  return {};
}

Result<std::vector<double>> FactorRule::model_values(const Range& range) const {
  FEDGE_CHECK(model_ != nullptr, "a rule for adapters has seen the model");
  std::vector<float> floats(range.size());
  FEDGE_TRY_VOID(model_->read(range.begin, floats));
  return std::vector<double>(floats.begin(), floats.end());
}

Result<std::vector<double>> FactorRule::factors_of(const Update& update,
                                                   std::span<const double> model) const {
  const AdapterLayout& a = adapters();
  const Coverage& coverage = update.coverage;
  const std::size_t count = coverage.count();
  const bool prefix = coverage.ranges().size() == 1 && coverage.ranges().front().begin == a.offset &&
                      count % a.row == 0 && count / a.row <= a.rank;
  if (!prefix)
    return invalid("the update of client " + std::to_string(update.client.value()) +
                   " must cover the first ranks of every adapter and nothing else");
  std::vector<float> difference(count);
  if (update.values) FEDGE_TRY_VOID(update.values->read(0, difference));
  std::vector<double> rows(count);
  for (std::size_t i = 0; i < count; ++i) rows[i] = model[i] + static_cast<double>(difference[i]);
  return rows;
}

Result<void> FactorRule::prepare(Parallel&) {
  if (updates_.empty()) return Error{ErrorCode::kUnavailable, "no update has arrived"};
  std::ranges::stable_sort(updates_, {}, [](const Update& update) { return update.client.value(); });
  FEDGE_TRY(model, model_values(adapters().prefix(adapters().rank)));
  pieces_.clear();
  begin();
  for (const Update& update : updates_) {
    FEDGE_TRY(rows, factors_of(update, model));
    take({.weight = static_cast<double>(update.weight.value()) * update.factor,
          .ranks = rows.size() / adapters().row,
          .rows = rows});
  }
  FEDGE_TRY_VOID(finish());
  std::vector<Range> ranges;
  for (Piece& piece : pieces_) {
    FEDGE_TRY(old, model_values(piece.range));
    for (std::size_t i = 0; i < old.size(); ++i) piece.difference[i] -= old[i];
    ranges.push_back(piece.range);
  }
  covered_ = Coverage::of(std::move(ranges));
  model_ = nullptr;
  return {};
}

void FactorRule::set(const Range& range, std::vector<double> values) {
  FEDGE_CHECK(values.size() == range.size() && (pieces_.empty() || pieces_.back().range.end <= range.begin),
              "new values in ascending order");
  pieces_.push_back({range, std::move(values)});
}

Result<void> FactorRule::read(std::size_t first, std::span<double> out, Parallel&) {
  std::ranges::fill(out, 0.0);
  for (const Piece& piece : pieces_) {
    const std::size_t begin = std::max(first, piece.range.begin);
    const std::size_t end = std::min(first + out.size(), piece.range.end);
    for (std::size_t i = begin; i < end; ++i) out[i - first] = piece.difference[i - piece.range.begin];
  }
  return {};
}

void FactorRule::clear() {
  updates_.clear();
  pieces_.clear();
  covered_ = {};
  model_ = nullptr;
}

}  // namespace fedge::aggregation

// FactorRule: base of the rules for adapters. Reads each client's factors in the order of client ids and
// returns the rule's results as differences from the round's model.
#pragma once

#include <span>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/adapter_layout.h"

namespace fedge::aggregation {

// A client's adapters after training: its first `ranks` rows, AdapterLayout::row floats each.
struct ClientFactors {
  double weight = 1;  // n_i, times the update's factor
  std::size_t ranks = 0;
  std::span<const double> rows;
};

class FactorRule : public Aggregator {
 public:
  explicit FactorRule(const AggregatorContext& context) : context_(context) {}

  Result<void> add(std::span<const Update> updates, Parallel& parallel) final;
  void see_model(const UpdateValues& model) final { model_ = &model; }
  // kInvalid, naming the client, for an update that is no prefix of the adapters.
  Result<void> prepare(Parallel& parallel) final;
  Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) final;
  Coverage covered() const final { return covered_; }
  void clear() final;

 protected:
  const AggregatorContext& context() const { return context_; }
  const AdapterLayout& adapters() const { return *context_.adapters; }
  // Values of the round's model.
  Result<std::vector<double>> model_values(const Range& range) const;

  // Per round: begin() forgets the earlier round, take() receives each client, finish() passes the results to
  // set(). A failed round ends the run, which then resumes from its journal; no retry within the rule.
  virtual void begin() = 0;
  virtual void take(const ClientFactors& client) = 0;
  virtual Result<void> finish() = 0;
  // Sets the new values of these parameters; ranges in ascending order.
  void set(const Range& range, std::vector<double> values);

 private:
  struct Piece {
    Range range;
    std::vector<double> difference;
  };
  Result<std::vector<double>> factors_of(const Update& update, std::span<const double> model) const;

  AggregatorContext context_;
  const UpdateValues* model_ = nullptr;
  std::vector<Update> updates_;
  std::vector<Piece> pieces_;
  Coverage covered_;
};

}  // namespace fedge::aggregation

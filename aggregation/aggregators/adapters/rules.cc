#include "aggregation/aggregators/adapters/rules.h"

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "aggregation/aggregators/adapters/factor_rule.h"
#include "core/rng.h"

namespace fedge::aggregation {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

// A client's A [ranks, in] and B^T [ranks, out] for one matrix.
Rows a_of(const ClientFactors& client, const AdapterLayout& layout, const AdaptedMatrix& m) {
  return {client.rows.data() + m.a, index(client.ranks), index(m.in),
          Eigen::OuterStride<>(index(layout.row))};
}
Rows b_of(const ClientFactors& client, const AdapterLayout& layout, const AdaptedMatrix& m) {
  return {client.rows.data() + m.b, index(client.ranks), index(m.out),
          Eigen::OuterStride<>(index(layout.row))};
}

// ||B A||_F over all matrices: its square is the sum of the elements of (A A^T) o (B^T B).
double product_norm(const ClientFactors& client, const AdapterLayout& layout) {
  double squares = 0;
  for (const AdaptedMatrix& m : layout.matrices) {
    const Rows a = a_of(client, layout, m);
    const Rows b = b_of(client, layout, m);
    squares += (a * a.transpose()).cwiseProduct(b * b.transpose()).sum();
  }
  return std::sqrt(std::max(0.0, squares));
}

// Pads only to the highest rank in the round. If both factors of a rank became zero in one round, that rank
// would never have a gradient again.
class PaddedMean final : public FactorRule {
 public:
  PaddedMean(const AggregatorContext& context, bool by_norm) : FactorRule(context), by_norm_(by_norm) {}

 private:
  void begin() override {
    sum_.assign(adapters().rank * adapters().row, 0.0);
    total_ = 0;
    ranks_ = 0;
  }

  void take(const ClientFactors& client) override {
    const double weight = by_norm_ ? product_norm(client, adapters()) : client.weight;
    for (std::size_t i = 0; i < client.rows.size(); ++i) sum_[i] += weight * client.rows[i];
    total_ += weight;
    ranks_ = std::max(ranks_, client.ranks);
  }

  Result<void> finish() override {
    // With weights by norm: no client has trained yet.
    if (total_ == 0) return Error{ErrorCode::kUnavailable, "all clients' adapters are zero"};
    for (double& value : sum_) value /= total_;
    sum_.resize(ranks_ * adapters().row);
    set(adapters().prefix(ranks_), std::move(sum_));
    return {};
  }

  bool by_norm_;
  std::vector<double> sum_;
  double total_ = 0;
  std::size_t ranks_ = 0;  // highest rank of a client in the round
};

// Sums for each matrix: sum n_i B_i A_i [out, in] and sum n_i.
class ProductSums {
 public:
  void begin(const AdapterLayout& layout) {
    sums_.clear();
    total_ = 0;
    for (const AdaptedMatrix& m : layout.matrices) sums_.push_back(Matrix::Zero(index(m.out), index(m.in)));
  }
  void add(const ClientFactors& client, const AdapterLayout& layout) {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      sums_[i].noalias() += client.weight * b_of(client, layout, layout.matrices[i]).transpose() *
                            a_of(client, layout, layout.matrices[i]);
    total_ += client.weight;
  }
  Matrix mean(std::size_t matrix) const { return sums_[matrix] / total_; }

 private:
  std::vector<Matrix> sums_;
  double total_ = 0;
};

class FlexLora final : public FactorRule {
 public:
  using FactorRule::FactorRule;

 private:
  void begin() override { products_.begin(adapters()); }
  void take(const ClientFactors& client) override { products_.add(client, adapters()); }

  Result<void> finish() override {
    const AdapterLayout& layout = adapters();
    std::vector<double> rows(layout.rank * layout.row, 0.0);
    for (std::size_t i = 0; i < layout.matrices.size(); ++i) write(i, rows);
    set(layout.prefix(layout.rank), std::move(rows));
    products_ = {};
    return {};
  }

  void write(std::size_t matrix, std::vector<double>& rows) const {
    const AdaptedMatrix& m = adapters().matrices[matrix];
    const Eigen::BDCSVD<Eigen::MatrixXd> svd(products_.mean(matrix),
                                             Eigen::ComputeThinU | Eigen::ComputeThinV);
    const std::size_t ranks = std::min({adapters().rank, m.in, m.out});
    for (std::size_t j = 0; j < ranks; ++j) {
      const auto u = svd.matrixU().col(index(j));
      const auto v = svd.matrixV().col(index(j));
      // Singular vectors are unique only up to their sign: make the largest element of v positive.
      Eigen::Index largest = 0;
      v.cwiseAbs().maxCoeff(&largest);
      const double sign = v(largest) < 0 ? -1.0 : 1.0;
      double* row = rows.data() + j * adapters().row;
      for (std::size_t k = 0; k < m.in; ++k) row[m.a + k] = sign * v(index(k));
      for (std::size_t k = 0; k < m.out; ++k)
        row[m.b + k] = sign * svd.singularValues()(index(j)) * u(index(k));
    }
  }

  ProductSums products_;
};

class Flora final : public FactorRule {
 public:
  using FactorRule::FactorRule;
  std::vector<std::span<std::byte>> memory() override {
    return {std::as_writable_bytes(std::span(&round_, 1))};
  }

 private:
  void begin() override { products_.begin(adapters()); }
  void take(const ClientFactors& client) override { products_.add(client, adapters()); }

  Result<void> finish() override {
    const AdapterLayout& layout = adapters();
    for (std::size_t i = 0; i < layout.matrices.size(); ++i) {
      const AdaptedMatrix& m = layout.matrices[i];
      const Range weights{m.weight, m.weight + m.in * m.out};
      FEDGE_TRY(values, model_values(weights));
      const Matrix mean = products_.mean(i);
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] += static_cast<double>(layout.scale) * mean.data()[k];
      set(weights, std::move(values));
    }
    set(layout.prefix(layout.rank), fresh());
    products_ = {};
    ++round_;
    return {};
  }

  // Initial values of a run: A uniform in +-1/sqrt(in), B zero.
  std::vector<double> fresh() const {
    const AdapterLayout& layout = adapters();
    const Rng rng = Rng(context().seed).fork("aggregate", round_ + 1);
    std::vector<double> rows(layout.rank * layout.row, 0.0);
    for (std::size_t j = 0; j < layout.rank; ++j)
      for (std::size_t i = 0; i < layout.matrices.size(); ++i) {
        const AdaptedMatrix& m = layout.matrices[i];
        Rng stream = rng.fork("adapter", j, i);
        const double bound = 1.0 / std::sqrt(static_cast<double>(m.in));
        for (std::size_t k = 0; k < m.in; ++k)
          rows[j * layout.row + m.a + k] = (2.0 * stream.uniform() - 1.0) * bound;
      }
    return rows;
  }

  ProductSums products_;
  std::uint64_t round_ = 0;  // rounds aggregated so far
};

}  // namespace

AggregatorPart read_zero_pad(config::Reader&) {
  return {.make = [](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
    return std::make_unique<PaddedMean>(context, false);
  }};
}

AggregatorPart read_hetlora(config::Reader&) {
  return {.make = [](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
    return std::make_unique<PaddedMean>(context, true);
  }};
}

AggregatorPart read_flexlora(config::Reader&) {
  return {.make = [](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
    return std::make_unique<FlexLora>(context);
  }};
}

AggregatorPart read_flora(config::Reader&) {
  return {.make = [](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
    return std::make_unique<Flora>(context);
  }};
}

}  // namespace fedge::aggregation

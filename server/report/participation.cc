#include "server/report/participation.h"

#include <utility>

namespace fedge::server {

Participation::Participation(std::vector<std::uint32_t> counts) : counts_(std::move(counts)) {
  for (const std::uint32_t count : counts_) ++with_[count];
}

void Participation::add(ClientId client) {
  std::uint32_t& count = counts_.at(client.value());
  const auto before = with_.find(count);
  if (--before->second == 0) with_.erase(before);
  ++with_[++count];
}

ParticipationFigures Participation::figures() const {
  ParticipationFigures figures;
  if (with_.empty()) return figures;
  figures.gap = with_.rbegin()->first - with_.begin()->first;
  double sum = 0;
  double squares = 0;
  double differences = 0;  // sum over pairs i < j of c_j - c_i, counts ascending
  double smaller = 0;      // number of clients with a smaller count
  double smaller_sum = 0;  // sum of their counts
  for (const auto& [count, number] : with_) {
    const auto c = static_cast<double>(count);
    const auto n = static_cast<double>(number);
    differences += n * (c * smaller - smaller_sum);
    smaller += n;
    smaller_sum += n * c;
    sum += n * c;
    squares += n * c * c;
  }
  if (sum == 0) return figures;
  const auto clients = static_cast<double>(counts_.size());
  figures.gini = differences / (clients * sum);
  figures.jain = sum * sum / (clients * squares);
  return figures;
}

}  // namespace fedge::server

#include "server/report/participation.h"

#include <utility>

namespace fedge::server {

Participation::Participation(std::size_t clients, std::vector<std::uint32_t> counts)
    : expected_(clients), counts_(std::move(counts)) {
  if (counts_.size() < clients) counts_.resize(clients, 0);
  for (const std::uint32_t count : counts_)
    if (count > 0) ++with_[count];
  count_absent();
}

// The clients that have not taken part.
void Participation::count_absent() {
  with_.erase(0);
  std::uint64_t took_part = 0;
  for (const auto& [count, number] : with_) took_part += number;
  if (took_part < expected_) with_[0] = expected_ - took_part;
}

void Participation::add(ClientId client) {
  if (client.value() >= counts_.size()) counts_.resize(std::size_t{client.value()} + 1, 0);
  std::uint32_t& count = counts_[client.value()];
  const auto before = with_.find(count);
  if (before != with_.end() && --before->second == 0) with_.erase(before);
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
  const auto clients = smaller;  // all of them
  figures.gini = differences / (clients * sum);
  figures.jain = sum * sum / (clients * squares);
  return figures;
}

}  // namespace fedge::server

#include "learn/layers/gradient_plan.h"

#include <algorithm>
#include <iterator>

namespace fedge::learn {
namespace {

// By node: itself, or the one whose buffers it shares.
std::vector<std::size_t> owners_of(std::span<const Node> nodes) {
  std::vector<std::size_t> owners;
  for (std::size_t n = 1; n <= nodes.size(); ++n)
    owners.push_back(nodes[n - 1].in_place ? owners[nodes[n - 1].from[0] - 1] : n);
  return owners;
}

// By node: the owners whose gradients this node is the first to write in a backward pass.
std::vector<std::vector<std::size_t>> begun_by(std::span<const Node> nodes,
                                               const std::vector<std::size_t>& owners) {
  std::vector<std::size_t> last_reader(nodes.size(), 0);
  for (std::size_t n = 1; n <= nodes.size(); ++n)
    for (const std::size_t from : nodes[n - 1].from)
      if (from > 0) last_reader[owners[from - 1] - 1] = n;
  last_reader[owners.back() - 1] = nodes.size();  // the loss writes it
  std::vector<std::vector<std::size_t>> begun(nodes.size() + 1);
  for (std::size_t n = 1; n <= nodes.size(); ++n)
    if (owners[n - 1] == n) begun[last_reader[n - 1]].push_back(n);
  return begun;
}

// Takes the smallest free buffer that is large enough, or else enlarges the largest.
std::size_t take(std::size_t size, std::vector<std::size_t>& free, std::vector<std::size_t>& sizes) {
  if (free.empty()) {
    sizes.push_back(size);
    return sizes.size() - 1;
  }
  const auto size_of = [&](std::size_t buffer) { return sizes[buffer]; };
  std::ranges::sort(free, {}, size_of);
  auto place = std::ranges::lower_bound(free, size, {}, size_of);
  if (place == free.end()) --place;
  const std::size_t buffer = *place;
  sizes[buffer] = std::max(sizes[buffer], size);
  free.erase(place);
  return buffer;
}

}  // namespace

GradientPlan plan_gradients(std::span<const Node> nodes, std::size_t batch) {
  const std::vector<std::size_t> owners = owners_of(nodes);
  const auto begun = begun_by(nodes, owners);
  GradientPlan plan{.buffers = std::vector<std::size_t>(nodes.size()), .sizes = {}};
  std::vector<std::size_t> free;
  for (std::size_t n = nodes.size(); n > 0; --n) {
    for (const std::size_t owner : begun[n])
      plan.buffers[owner - 1] = take(batch * nodes[owner - 1].operation->shape().size(), free, plan.sizes);
    if (owners[n - 1] == n) free.push_back(plan.buffers[n - 1]);
  }
  for (std::size_t n = 1; n <= nodes.size(); ++n) plan.buffers[n - 1] = plan.buffers[owners[n - 1] - 1];
  return plan;
}

}  // namespace fedge::learn

#include "aggregation/planners/unit_order.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace fedge::aggregation {
namespace {

using Order = std::vector<std::size_t>;  // by new place: the unit that comes there

Order order_of(const PlanLayer& layer, std::span<const float> model) {
  std::vector<double> importance;
  for (std::size_t unit = 0; unit < layer.units; ++unit) {
    double sum = 0;
    for (const float weight : model.subspan(layer.weight + unit * layer.row(), layer.row()))
      sum += static_cast<double>(weight) * static_cast<double>(weight);
    importance.push_back(sum);
  }
  Order order(layer.units);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return importance[a] > importance[b]; });
  return order;
}

// Copies the layer with its rows in `rows` order; each row consists of one run of values for each entry of
// `inputs`.
void move_layer(const PlanLayer& layer, const Order& rows, const Order& inputs, std::span<const float> from,
                std::span<float> to) {
  const std::size_t run = layer.row() / inputs.size();
  for (std::size_t unit = 0; unit < layer.units; ++unit) {
    const std::size_t old = layer.weight + rows[unit] * layer.row();
    const std::size_t place = layer.weight + unit * layer.row();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      std::copy_n(from.data() + old + inputs[i] * run, run, to.data() + place + i * run);
    for (const std::size_t vector : layer.vectors) to[vector + unit] = from[vector + rows[unit]];
  }
}

}  // namespace

bool sort_units(const std::vector<PlanLayer>& layers, std::span<float> model) {
  std::vector<Order> orders;
  for (const PlanLayer& layer : layers) orders.push_back(order_of(layer, model));
  std::iota(orders.back().begin(), orders.back().end(), std::size_t{0});  // outputs have a meaning
  if (std::ranges::all_of(orders, [](const Order& order) { return std::ranges::is_sorted(order); }))
    return false;
  const std::vector<float> before(model.begin(), model.end());
  const Order all{0};
  for (std::size_t l = 0; l < layers.size(); ++l)
    move_layer(layers[l], orders[l], l == 0 ? all : orders[l - 1], before, model);
  return true;
}

}  // namespace fedge::aggregation

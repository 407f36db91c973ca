// Sub-models: thinner networks whose layers keep some of the units of the whole model's layers (HeteroFL:
// Diao, Ding, Tarokh, ICLR 2021; FjORD: Horvath et al., NeurIPS 2021; FedRolex: Alam et al., NeurIPS 2022).
// Let S_l be the units that layer l keeps. A slice is the Coverage with {rows in S_l} x {inputs from S_(l-1)}
// of each weight tensor and S_l of each bias. The model's inputs and its last layer are whole. S_l is a
// window of neighbouring units that may wrap around the layer's end. If a unit feeds several inputs of the
// next layer (a kernel; a dense layer after convolutions, channels first), these inputs form one run. The
// sub-model's parameters are the slice's values, packed in ascending order.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/result.h"
#include "learn/model.h"

namespace fedge::learn {

// Number of units of each hidden layer, beginning at the inputs.
using Widths = std::vector<std::size_t>;

Widths widths_of(const Model& model);
// Whether a thinner network inside a model of this kind is a model of the same kind (softmax, mlp, cnn). Only
// these kinds can be sliced; make_submodel() knows their options.
bool has_submodels(const ModelSpec& spec);
// Number of units that the slice keeps of each hidden layer of `whole`. kInvalid, naming the tensor at fault,
// if the coverage is not a slice as defined above. Cost: linear in rows and ranges.
Result<Widths> slice_widths(const Model& whole, const Coverage& slice);
// The slice that keeps the first widths[l] units of each hidden layer. Each width must be at least 1 and at
// most the model's.
Coverage prefix_slice(const Model& whole, const Widths& widths);
// The whole model's widths times `share`, rounded half up, each at least 1; 0 < share <= 1.
Widths share_widths(const Model& whole, double share);
// Builds a model like `whole` with these widths, each at least 1 and at most the model's.
std::unique_ptr<Model> make_submodel(const Model& whole, const Widths& widths);

// gather() copies the covered values of `from` to `packed`, in order; scatter() copies them back. `packed`
// has coverage.count() floats.
void gather(std::span<const float> from, const Coverage& coverage, std::span<float> packed);
void scatter(std::span<const float> packed, const Coverage& coverage, std::span<float> to);

// Cache of the sub-models of one model and their scratch, by widths. Not thread-safe. Memory: at most kMost
// models' scratch.
class Submodels {
 public:
  static constexpr std::size_t kMost = 64;

  struct Entry {
    std::unique_ptr<Model> model;
    std::unique_ptr<Workspace> workspace;
  };

  // `whole` must outlive the cache.
  Submodels(const Model& whole, std::size_t max_batch) : whole_(&whole), max_batch_(max_batch) {}

  // Clears the cache unless it can hold `count` more entries. This invalidates all earlier results of find().
  void make_room(std::size_t count);
  // Returns the sub-model, building it if needed. The reference stays valid until make_room(). Each width is
  // at least 1 and at most the model's.
  const Entry& find(const Widths& widths);

 private:
  const Model* whole_;
  std::size_t max_batch_;
  std::map<Widths, Entry> made_;
};

}  // namespace fedge::learn

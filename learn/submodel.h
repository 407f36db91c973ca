// Sub-models: a thinner network whose layers keep some of the units of the whole model's layers
// (HeteroFL: Diao, Ding, Tarokh, ICLR 2021; FjORD: Horvath et al., NeurIPS 2021; FedRolex: Alam et al.,
// NeurIPS 2022). With S_l the units that layer l keeps, the slice of the whole model is a Coverage: of
// each weight tensor {rows in S_l} x {inputs from S_(l-1)}, of each bias S_l. The model's inputs and its last
// layer are whole. S_l is a window of neighbouring units that may wrap around the layer's end. Where a
// unit has several inputs in the next layer (a kernel; a dense layer behind convolutions, channels first),
// they are one run. The slice's values, packed in ascending order, are the sub-model's parameters.
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

// Units of each hidden layer, from the inputs on.
using Widths = std::vector<std::size_t>;

Widths widths_of(const Model& model);
// How many units the slice keeps of each hidden layer of `whole`. kInvalid, naming the tensor at fault, if
// the coverage is no slice as above. Cost: the number of rows and ranges.
Result<Widths> slice_widths(const Model& whole, const Coverage& slice);
// The slice that keeps the first widths[l] units of each hidden layer; each at least 1 and at most the
// model's.
Coverage prefix_slice(const Model& whole, const Widths& widths);
// The whole model's widths times `share`, rounded to the nearest, half up, at least 1; 0 < share <= 1.
Widths share_widths(const Model& whole, double share);
// What `whole` was made from, but for these widths; each at least 1 and at most the model's.
std::unique_ptr<Model> make_submodel(const Model& whole, const Widths& widths);

// packed = the covered values of `from`, in order, and back. packed holds coverage.count() floats.
void gather(std::span<const float> from, const Coverage& coverage, std::span<float> packed);
void scatter(std::span<const float> packed, const Coverage& coverage, std::span<float> to);

// Sub-models of one model with their scratch, made once for each choice of widths. For one thread.
// Memory: the scratch of at most kMost models.
class Submodels {
 public:
  static constexpr std::size_t kMost = 64;

  struct Entry {
    std::unique_ptr<Model> model;
    std::unique_ptr<Workspace> workspace;
  };

  // `whole` must outlive it.
  Submodels(const Model& whole, std::size_t max_batch) : whole_(&whole), max_batch_(max_batch) {}

  // Forgets all if there is no room for so many more; what find() gave before is gone then.
  void make_room(std::size_t count);
  // Stays valid until make_room(). The widths are at least 1 and at most the model's.
  const Entry& find(const Widths& widths);

 private:
  const Model* whole_;
  std::size_t max_batch_;
  std::map<Widths, Entry> made_;
};

}  // namespace fedge::learn

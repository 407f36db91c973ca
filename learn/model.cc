#include "learn/model.h"

#include <algorithm>
#include <limits>
#include <string>

#include "learn/models/cnn.h"
#include "learn/models/dense.h"

namespace fedge::learn {
namespace {

// 16 GiB of float32; what a run file asks for by mistake must not take the machine down.
constexpr double kMaxParameters = 4294967296.0;

Result<void> bounded(double parameters, const char* key) {
  if (parameters <= kMaxParameters) return {};
  return invalid(std::string(key) + ": the model would have more than 2^32 parameters; make it smaller");
}

Result<std::unique_ptr<Model>> make_cnn_model(const ModelSpec& spec, const InputShape& input,
                                              std::size_t classes) {
  if (input.height % 4 != 0 || input.width % 4 != 0 || input.height < 4 || input.width < 4)
    return invalid(
        "model.kind: a cnn pools twice by 2 and needs images whose sides are multiples of 4; these are " +
        std::to_string(input.height) + "x" + std::to_string(input.width));
  if (spec.channels.size() != 2)
    return invalid("model.channels: a cnn has two convolutions, give two numbers, not " +
                   std::to_string(spec.channels.size()));
  // Places in a convolution's scratch are 32-bit: its weights, each kernel row filled up to 16 floats, and
  // an image with its border of two pixels.
  const auto first = static_cast<double>(spec.channels[0]);
  const auto second = static_cast<double>(spec.channels[1]);
  const auto border = static_cast<double>((input.height + 4) * (input.width + 4));
  const double widest = std::max(static_cast<double>(input.channels), first);
  FEDGE_TRY_VOID(bounded(5 * (5 * static_cast<double>(input.channels) + 15) * first, "model.channels"));
  FEDGE_TRY_VOID(bounded(5 * (5 * first + 15) * second, "model.channels"));
  FEDGE_TRY_VOID(bounded(border * widest, "model.channels"));
  const double flat =
      static_cast<double>(input.height * input.width / 16) * static_cast<double>(spec.channels[1]);
  FEDGE_TRY_VOID(bounded(flat * static_cast<double>(spec.dense), "model.dense"));
  return make_cnn({input, spec.channels[0], spec.channels[1], spec.dense, classes});
}

Result<std::unique_ptr<Model>> make_any_dense_model(const ModelSpec& spec, const InputShape& input,
                                                    std::size_t classes) {
  std::vector<std::size_t> widths{input.size()};
  if (spec.kind == ModelKind::kMlp) widths.insert(widths.end(), spec.hidden.begin(), spec.hidden.end());
  widths.push_back(classes);
  double parameters = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i)
    parameters += static_cast<double>(widths[i]) * static_cast<double>(widths[i + 1]);
  FEDGE_TRY_VOID(bounded(parameters, "model.hidden"));
  return make_dense_model(widths);
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, const InputShape& input,
                                          std::size_t classes) {
  FEDGE_TRY(model, spec.kind == ModelKind::kCnn ? make_cnn_model(spec, input, classes)
                                                : make_any_dense_model(spec, input, classes));
  model->spec_ = spec;
  model->input_ = input;
  return model;
}

}  // namespace fedge::learn

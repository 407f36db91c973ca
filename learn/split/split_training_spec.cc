#include "learn/split/split_training_spec.h"

#include <string>
#include <vector>

namespace fedge::learn {
namespace {

const std::vector<std::string> kCodecNames = {"float32", "int8"};
const std::vector<std::string> kTargetNames = {"sent", "kept"};

}  // namespace

SplitTrainingSpec read_split_training(config::Reader& section) {
  SplitTrainingSpec spec;
  spec.cut_ranks = static_cast<std::size_t>(section.integer(
      "cut_ranks", 0, {0, 1024},
      "Number of ranks that are trained in the two blocks next to the cut. 0: all ranks of the adapters."));
  spec.keeps_targets =
      section.choice(
          "targets", kTargetNames, 0,
          "Where the model's head and the loss run.\nsent: at the coordinator; clients send it the "
          "tokens to predict.\nkept: on the client. Twice as many activations travel.") == 1;
  spec.codec = static_cast<CutEncoding>(
      section.choice("codec", kCodecNames, 0,
                     "Encoding of the activations and gradients at the cut.\nfloat32: "
                     "as they are.\nint8: one byte for each value "
                     "and a scale for each token."));
  spec.feedback = section.boolean("error_feedback", false,
                                  "int8: whether the rounding error of a sample's activations is added when "
                                  "the sample is sent the next time.");
  if (spec.feedback && spec.codec != CutEncoding::kInt8)
    section.fail("error_feedback", "needs codec = \"int8\", because float32 has no rounding error");
  return spec;
}

}  // namespace fedge::learn

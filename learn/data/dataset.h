// Dataset: labelled samples in memory, immutable once loaded. All clients of a simulation share one; a
// client's part is a list of sample numbers. Fashion-MNIST takes 55 MB as bytes or 220 MB as float32; loading
// takes under a second. Texts (learn/text/corpus.h) are windows of tokens, labelled by their group.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/data/label.h"
#include "learn/data/targets/target.h"
#include "learn/spec.h"
#include "learn/statistics/columns.h"
#include "learn/token.h"

namespace fedge::learn {

// Height x width x channels of a sample, in floats.
struct InputShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 1;
  bool tokens = false;  // a sample is `width` tokens instead
  std::size_t size() const { return height * width * channels; }
  bool operator==(const InputShape&) const = default;
};

// Inputs stored as their original bytes: a quarter of the memory of floats, at the cost of a table look-up
// each.
struct ByteInputs {
  std::vector<std::uint8_t> bytes;  // samples x shape.size(), row-major; or empty
  std::array<float, 256> value{};   // normalised value of each byte
};

// Windows of a text: sample i predicts tokens[start + 1 .. start + targets] from the tokens before each of
// them.
struct TextInputs {
  struct Window {
    std::uint32_t start = 0;
    std::uint32_t targets = 0;  // at least 1, at most the shape's width
  };
  std::vector<Token> tokens;
  std::vector<Window> windows;
  std::size_t vocabulary = 0;
  std::vector<std::uint16_t> bytes;  // number of bytes of text of each token in the vocabulary
};

// The label of a sample is its class, its most frequent class if it has a class for each point, or its group:
// of a text, its author or topic; samples with values or several labels are one group.
struct Dataset {
  InputShape shape;
  std::size_t classes = 0;
  AlignedBuffer<float> floats;  // inputs, samples x shape.size(), row-major, normalised; may be empty
  std::vector<Label> labels;    // samples, each < classes
  ByteInputs packed{};          // used if `floats` is empty
  TextInputs text{};            // used for texts
  Targets targets{};            // empty if a class, or a text, is all
  std::vector<std::string> class_names{};  // for display, one for each class or label; may be empty
  FeatureColumns columns{};                // that are normalised when they are read; may be empty
  Normalisation normalisation{};           // of the columns, unless a task has another

  std::size_t size() const { return labels.size(); }
  // Returns the target of a model of this data.
  TargetShape target() const {
    if (targets.shape.kind != TargetKind::kClass) return targets.shape;
    return {.outputs = shape.tokens ? text.vocabulary : classes};
  }
  // Copies the inputs of samples first, first + 1, ... until `out` is full, without normalising them.
  void read_inputs(std::size_t first, std::span<float> out) const;
};

// By which numbers errors of normalised values are multiplied; empty: 1. `by` is the normalisation that was
// used.
std::vector<float> target_scale(const FeatureColumns& columns, const Normalisation& by,
                                const std::vector<float>& scale);
// The same for a data set's own normalisation.
std::vector<float> target_scale(const Dataset& data);

// The properties of a data set that are known without its files.
struct DatasetInfo {
  InputShape shape;
  std::size_t classes = 0;               // 0 for texts: the number of groups depends on the files
  std::size_t outputs = 0;               // of a model: classes, labels, values, or tokens
  std::vector<std::string> class_names;  // for display, one for each class or label; may be empty
  FeatureColumns columns{};              // of a Dataset
  TargetKind kind = TargetKind::kClass;
  std::size_t points = 1;  // of a sample, each with a class
  // The deviation by which the data set has divided each value; empty: none, or that of the columns. Of
  // points, as in Targets.
  std::vector<float> target_scale{};

  TargetShape target() const { return {kind, outputs, points}; }
};

enum class Split { kTrain, kTest };

struct SampleLabels {
  std::vector<Label> values;  // of all training samples, each < classes
  std::size_t classes = 0;
};
// Chooses samples, ascending, by the labels of all training samples.
using ChooseSamples =
    std::function<Result<std::vector<std::uint32_t>>(std::span<const Label> labels, std::size_t classes)>;

// Where the samples of a data set come from. One class for each format; learn/data/kinds.h has the table of
// their names. Without state that changes: every call with the same arguments returns the same samples, on
// every machine, because coordinator and clients rely on the same labels and order.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual Result<DatasetInfo> describe(const DataSpec& spec) const = 0;
  // Whether its samples can be used only with the clients' statistics (DataSpec::federated_normalisation).
  virtual bool needs_statistics() const { return false; }
  // Loads all samples of a split, inputs as floats or bytes.
  virtual Result<Dataset> load(const DataSpec& spec, Split split) const = 0;
  // Override these two if labels, or a part of the samples, can be loaded at a lower cost than everything:
  // labels() returns those of the training samples, and load_chosen() the training samples that `choose`
  // names, in its order. It calls `choose` once, and returns its error.
  virtual Result<SampleLabels> labels(const DataSpec& spec) const;
  virtual Result<Dataset> load_chosen(const DataSpec& spec, const ChooseSamples& choose) const;
  // Names of the classes for display; empty if they cannot be read. Override it if they depend on the files.
  virtual std::vector<std::string> class_names(const DataSpec& spec) const;
};

// Loads the data set's training samples (as floats, since a simulator reads them repeatedly) or test samples
// (as bytes). kNotFound names the missing file, the package that installs it and the key for another
// directory. kCorrupt names what does not match.
// Own data: the samples of all clients of a simulation; `rng` is the run's root stream.
Result<std::shared_ptr<const Dataset>> load_train(const DataSpec& spec, const Rng& rng);
Result<std::shared_ptr<const Dataset>> load_test(const DataSpec& spec);

// Loads one client's part of the training set (images as bytes); own data: the device's training samples.
// Sample i is sample partition_for_clients(...).of(client)[i] of the whole set, so training on 0..size()-1 is
// training on that part. `rng` is the run's root stream; client < partition.clients.
Result<std::shared_ptr<const Dataset>> load_part(const DataSpec& spec, std::size_t client, const Rng& rng);

// Loads the samples on which every model of a run is evaluated: the test samples, or the validation samples
// (images as bytes) if data.validation is above 0. A text's data.test_windows applies to both. `rng` is the
// run's root stream. Errors are those of load_test() or of validation_samples().
Result<std::shared_ptr<const Dataset>> load_evaluation(const DataSpec& spec, const Rng& rng);

// Number of training samples of each client. Errors include those of partition_for_clients().
Result<std::vector<std::uint32_t>> partition_sizes(const DataSpec& spec, const Rng& rng);

Result<DatasetInfo> describe(const DataSpec& spec);
// What is predicted; a class if the data set cannot be described.
TargetKind task_of(const DataSpec& spec);
// Names of the classes for display; for a text, its groups, read from its files. Empty if they cannot be
// read.
std::vector<std::string> class_names(const DataSpec& spec);

}  // namespace fedge::learn

// Dataset: labelled samples in memory, immutable once loaded and shared by every client of a
// simulation; a client's part is a list of sample numbers. Fashion-MNIST (Xiao, Rasul, Vollgraf 2017,
// 60,000 + 10,000 images, 28x28, 10 classes) is 55 MB as bytes, 220 MB as float32; loading it takes
// under a second. Texts (learn/text/corpus.h) are windows of tokens, labelled by the group they are from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/spec.h"
#include "learn/token.h"

namespace fedge::learn {

// Height x width x channels of one sample; height * width * channels floats.
struct InputShape {
  std::size_t height = 0;
  std::size_t width = 0;
  std::size_t channels = 1;
  bool tokens = false;  // width tokens in place of pixels
  std::size_t size() const { return height * width * channels; }
  bool operator==(const InputShape&) const = default;
};

// Inputs as the bytes they came in: a quarter of the memory, for the time of a table look-up each.
struct ByteInputs {
  std::vector<std::uint8_t> bytes;  // samples x shape.size(), row-major; empty if the inputs are floats
  std::array<float, 256> value{};   // what each byte stands for, normalised
};

// Windows of a text: sample i predicts tokens[start + 1 .. start + targets] from those before.
struct TextInputs {
  struct Window {
    std::uint32_t start = 0;
    std::uint32_t targets = 0;  // at least 1, at most the shape's width
  };
  std::vector<Token> tokens;
  std::vector<Window> windows;
  std::size_t vocabulary = 0;
  std::vector<std::uint16_t> bytes;  // of text that each token of the vocabulary stands for
};

// Of a text a sample's label is the group that it belongs to: its author, or its topic.
struct Dataset {
  InputShape shape;
  std::size_t classes = 0;
  AlignedBuffer<float> floats;             // inputs, samples x shape.size(), row-major, normalised; or none
  std::vector<std::uint8_t> labels;        // samples, each < classes
  ByteInputs packed{};                     // the inputs if there are no floats
  TextInputs text{};                       // or neither
  std::vector<std::string> class_names{};  // for people, one a class; may be empty

  std::size_t size() const { return labels.size(); }
  // What a model of these data tells apart: classes, or tokens.
  std::size_t outputs() const { return shape.tokens ? text.vocabulary : classes; }
  // The inputs of samples first, first + 1, ...: as many as `out` has room for.
  void read_inputs(std::size_t first, std::span<float> out) const;
};

// Loads the named data set's training samples (as floats: a simulator reads them over and over) or
// test samples (as bytes). A missing file is kNotFound and names the path, the package that ships it
// and the key that points elsewhere; a damaged one is kCorrupt and names what did not match.
Result<std::shared_ptr<const Dataset>> load_train(const DataSpec& spec);
Result<std::shared_ptr<const Dataset>> load_test(const DataSpec& spec);

// One client's part of the training set and nothing else (as bytes), for a device that trains on its own
// data: sample i of the result is sample partition(...).of(client)[i] of the whole set, so that training on
// 0..size()-1 is training on that part. `rng` is the run's root stream; `client` < partition.clients.
Result<std::shared_ptr<const Dataset>> load_part(const DataSpec& spec, std::size_t client, const Rng& rng);

// How many samples of the training set each client has; errors are partition's, where it cannot be shared out
// as asked.
Result<std::vector<std::uint32_t>> partition_sizes(const DataSpec& spec, const Rng& rng);

// What is known without the files.
struct DatasetInfo {
  InputShape shape;
  std::size_t classes = 0;               // 0 for a text: its groups are known when it has been read
  std::size_t outputs = 0;               // what a model of it tells apart: classes, or tokens
  std::vector<std::string> class_names;  // for people, one a class
};
Result<DatasetInfo> describe(const DataSpec& spec);
// For people; of a text its groups, read from its files. Empty if that is not possible.
std::vector<std::string> class_names(const DataSpec& spec);

}  // namespace fedge::learn
